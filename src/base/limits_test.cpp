#include "base/limits.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(Limits, give_a_stranger_no_more_than_a_node_in_anything) {
  constexpr Limits kStranger = Limits::stranger();
  constexpr Limits kNode;
  EXPECT_LT(kStranger.head_bytes_max, kNode.head_bytes_max);
  EXPECT_LT(kStranger.payload_bytes_max, kNode.payload_bytes_max);
  EXPECT_LT(kStranger.tensors_max, kNode.tensors_max);
  EXPECT_LE(kStranger.name_bytes_max, kNode.name_bytes_max);
  EXPECT_LE(kStranger.value_depth_max, kNode.value_depth_max);
  EXPECT_LE(kStranger.value_items_max, kNode.value_items_max);
  EXPECT_LT(kStranger.send_queue_bytes_max, kNode.send_queue_bytes_max);
  EXPECT_LT(kStranger.send_queue_frames_max, kNode.send_queue_frames_max);
  EXPECT_LE(kStranger.connections_max, kNode.connections_max);
  EXPECT_LT(kStranger.connection_bytes_max(), kNode.connection_bytes_max());
}

TEST(Limits, let_a_stranger_hold_nothing_with_payloads_and_little_with_the_rest) {
  EXPECT_EQ(Limits::stranger().payload_bytes_max, 0u);
  EXPECT_EQ(Limits::stranger().tensors_max, 0u);
  EXPECT_LE(Limits::stranger().connection_bytes_max(), 512 * kKiB);
}

TEST(Limits, of_a_connection_are_the_sum_of_its_named_consumers) {
  Limits limits;
  limits.head_bytes_max = 1000;
  limits.send_queue_frames_max = 3;
  const std::uint64_t expected = Limits::kHeldBytes + Limits::kStagingBytes + 1000 + Limits::kGatherBytes +
                                 3 * Limits::kQueuedFrameBytes;
  EXPECT_EQ(limits.connection_bytes_max(), expected);
}

TEST(Limits, of_the_process_are_those_of_a_connection_times_their_number) {
  Limits limits;
  EXPECT_EQ(limits.memory_bytes_max(), limits.connections_max * limits.connection_bytes_max());
  limits.connections_max = 7;
  EXPECT_EQ(limits.memory_bytes_max(), 7 * limits.connection_bytes_max());
}

TEST(Limits, by_default_fit_a_machine_with_four_gigabytes) {
  EXPECT_LT(Limits().memory_bytes_max(), 4 * kGiB);
}

}  // namespace
}  // namespace w5xde
