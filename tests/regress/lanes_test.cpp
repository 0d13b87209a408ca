// A lease or a contribution that named more lanes than a number of 32 bits holds was taken as if it had named
// the largest such number: two forms of one message, where the wire knows one. A fuzzer found it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "support/message_bytes.h"

namespace w5xde {
namespace {

// Its head with `lanes`, a varint, in the place of its one byte of lanes.
template <class Message>
std::string refusal_with_lanes(const Message& message, std::size_t place, const Head& lanes) {
  Head head = encoded(message);
  const auto byte = head.begin() + static_cast<std::ptrdiff_t>(place);
  head.insert(head.erase(byte), lanes.begin(), lanes.end());
  const auto decoded = Decode<Message>::from(head, Limits{});
  if (!decoded.ok()) return decoded.error().to_string();
  return std::ranges::equal(encoded(*decoded), head) ? "accepted" : "accepted in another form";
}

Head varint(std::uint64_t value) {
  Head head;
  ByteWriter(head).write_varint(value);
  return head;
}

TEST(LanesTest, more_than_a_lease_can_name_are_refused) {
  const Lease lease{.block = {0, 1},
                    .slot_samples = {1},
                    .tensors = {{DType::f32, Shape{1}, false, ""}, {DType::u8, Shape{1}, false, ""}}};
  constexpr std::size_t kPlace = 4 * 8 + 2 * 4 + 1;
  EXPECT_EQ(refusal_with_lanes(lease, kPlace, varint(UINT32_MAX)), "accepted");
  EXPECT_EQ(refusal_with_lanes(lease, kPlace, varint(std::uint64_t{1} << 32)), "corrupt: 4294967296 lanes");
}

TEST(LanesTest, more_than_a_contribution_can_name_are_refused) {
  const Contribution contribution{.block = {0, 1}, .tensors = {}};
  constexpr std::size_t kPlace = 3 * 8 + 2 * 4 + 3 * 8 + 2;
  EXPECT_EQ(refusal_with_lanes(contribution, kPlace, varint(UINT32_MAX)), "accepted");
  EXPECT_EQ(refusal_with_lanes(contribution, kPlace, varint(std::uint64_t{1} << 32)),
            "corrupt: 4294967296 lanes");
}

}  // namespace
}  // namespace w5xde
