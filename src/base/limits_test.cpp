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

TEST(Limits, let_strangers_have_half_of_the_places_and_one_address_a_quarter_of_those) {
  constexpr Limits kLimits;
  EXPECT_LE(kLimits.strangers_max, kLimits.connections_max / 2);
  EXPECT_LE(kLimits.strangers_per_address_max, kLimits.strangers_max / 4);
}

TEST(Limits, of_a_session_follow_the_run_and_not_the_peer) {
  constexpr Limits kLimits;
  EXPECT_EQ(kLimits.session_bytes_max(0, 0), kLimits.head_bytes_max);
  EXPECT_EQ(kLimits.session_bytes_max(1000, 10), kLimits.head_bytes_max + 7 * 1000 + 2 * 10);
}

TEST(Limits, of_a_node_grow_with_its_lanes_and_its_model) {
  constexpr Limits kLimits;
  EXPECT_EQ(kLimits.node_bytes_max(0, 8),
            kLimits.lease_bytes_held_max + kLimits.payload_bytes_max + kLimits.model_file_bytes_max);
  EXPECT_EQ(kLimits.node_bytes_max(1000, 2) - kLimits.node_bytes_max(0, 2), 26 * 1000u);
}

TEST(Limits, by_default_fit_a_machine_with_four_gigabytes) {
  EXPECT_LT(Limits().memory_bytes_max(), 4 * kGiB);
}

}  // namespace
}  // namespace w5xde
