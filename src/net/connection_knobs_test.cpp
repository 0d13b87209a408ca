// What SocketOptions change in how a connection reads and writes, watched at its stream, on every kind of
// stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "support/hand_peer.h"
#include "support/stream_pairs.h"
#include "support/watched_stream.h"

namespace w5xde {
namespace {

class ConnectionKnobs : public testing::TestWithParam<StreamKind> {
 protected:
  void start(const SocketOptions& options) {
    pair_ = GetParam().make();
    sender_ = std::make_unique<HandPeer>(std::make_unique<WatchedStream>(std::move(pair_->near), sending_));
    receiver_ =
        std::make_unique<HandPeer>(std::make_unique<WatchedStream>(std::move(pair_->far), receiving_));
    sender_->connection().tune(options);
    receiver_->connection().tune(options);
  }
  void TearDown() override {
    sender_.reset();
    receiver_.reset();
  }

  // One frame across, whole.
  void carry(std::size_t payload_bytes) {
    std::vector<std::byte> payload(payload_bytes);
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 7 >> 3);
    const TensorView view = TensorView::of_bytes(payload);
    sender_->say({.type = FrameType::tensors, .head = bytes_of("head"), .payload = {&view, 1}});
    ASSERT_TRUE(pair_->run_until([&] { return receiver_->count(FrameType::tensors) == 1; }))
        << receiver_->why();
    EXPECT_TRUE(receiver_->take(FrameType::tensors)->payload == payload);
  }

  static constexpr std::size_t kFront = kFrameHeaderBytes + 4;  // header and "head"

  Watch sending_, receiving_;
  std::unique_ptr<StreamPair> pair_;
  std::unique_ptr<HandPeer> sender_, receiver_;
};

TEST_P(ConnectionKnobs, no_read_asks_for_more_than_the_receive_chunk) {
  for (const std::size_t chunk : {std::size_t{1000}, 64 * kKiB, 256 * kKiB, kMiB}) {
    SCOPED_TRACE(chunk);
    TearDown();
    receiving_ = {};
    start({.receive_chunk_bytes = chunk});
    carry(3 * kMiB);
    EXPECT_GE(receiving_.reads.size(), 3 * kMiB / chunk);
    EXPECT_EQ(std::ranges::max(receiving_.reads), chunk) << "nor is every read smaller";
  }
}

TEST_P(ConnectionKnobs, without_a_receive_chunk_reads_are_as_large_as_the_reader_has_room) {
  start({});
  carry(3 * kMiB);
  EXPECT_EQ(std::ranges::max(receiving_.reads), 512 * kKiB);
}

TEST_P(ConnectionKnobs, a_combined_send_is_one_call_for_header_and_payload) {
  start({.combined_send = true});
  carry(1000);
  ASSERT_FALSE(sending_.writes.empty());
  EXPECT_EQ(sending_.writes[0], (std::vector<std::size_t>{kFront, 1000, kFrameChecksumBytes}));
}

TEST_P(ConnectionKnobs, otherwise_header_and_payload_leave_in_calls_of_their_own) {
  start({.combined_send = false});
  carry(1000);
  ASSERT_GE(sending_.writes.size(), 3u);
  for (const auto& parts : sending_.writes) EXPECT_EQ(parts.size(), 1u);
  // A stream whose handshake is not over takes nothing yet, and is offered the same again.
  const auto [repeated, end] = std::ranges::unique(sending_.writes);
  sending_.writes.erase(repeated, end);
  EXPECT_EQ(sending_.writes[0][0], kFront);
  EXPECT_EQ(sending_.writes[1][0], 1000u);
  EXPECT_EQ(sending_.writes[2][0], kFrameChecksumBytes);
}

TEST_P(ConnectionKnobs, the_stream_is_tuned_as_the_connection_was_told) {
  const SocketOptions options{.quick_ack = false, .keep_alive = false, .send_buffer_bytes = 64 * kKiB};
  start(options);
  EXPECT_EQ(sending_.tunings, std::vector{options});
}

INSTANTIATE_TEST_SUITE_P(every_kind, ConnectionKnobs, testing::ValuesIn(all_stream_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace w5xde
