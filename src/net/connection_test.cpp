#include "net/connection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <string>
#include <vector>

#include "support/frames.h"
#include "support/memory_stream.h"
#include "support/sim_loop.h"
#include "wire/messages.h"

namespace w5xde {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class KeepingOwner : public Connection::Owner {
 public:
  Result<MutableBytes> place(const FrameHeader& header, Bytes) override {
    ++places;
    landing.resize(header.payload_bytes);
    return MutableBytes(landing);
  }
  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override {
    frames.push_back({header, {head.begin(), head.end()}, {payload.begin(), payload.end()}});
    if (on_frame) on_frame();
    return verdict;
  }
  void drained() override { ++drains; }
  void closed(const Error& reason) override {
    ++closings;
    why = reason;
  }
  void gone() override { ++goings; }

  std::list<ReceivedFrame> frames;
  std::vector<std::byte> landing;
  std::function<void()> on_frame;
  Status verdict;
  int places = 0;
  int drains = 0;
  int closings = 0;
  int goings = 0;
  std::optional<Error> why;
};

// One connection and, at the other end of a memory stream, either another one or a peer that is played by
// hand.
class ConnectionTest : public testing::Test {
 protected:
  static constexpr std::size_t kCapacity = 64 * 1024;

  void start(const Limits& limits = {}) {
    auto [near, far] = make_memory_streams(loop_, kCapacity);
    connection_ = Connection::start(std::move(near), owner_, limits);
    raw_ = std::move(far);
  }
  void start_both() {
    start();
    peer_ = Connection::start(std::move(raw_), peer_owner_, {});
  }
  void TearDown() override {
    connection_.reset();
    peer_.reset();
    raw_.reset();
  }

  void say(Bytes bytes) {
    const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const auto count = raw_->write({&part, 1});
    ASSERT_TRUE(count.ok());
    ASSERT_EQ(*count, bytes.size());
    loop_.run_ready();
  }
  // What the connection under test has written so far.
  std::string hear() {
    std::string text(kCapacity, '\0');
    const iovec part{text.data(), text.size()};
    const auto count = raw_->read({&part, 1});
    return text.substr(0, count.ok() ? *count : 0);
  }
  // It has closed, and waits for the peer, which is played by hand, to do so too.
  void expect_parting() {
    EXPECT_EQ(owner_.closings, 1);
    EXPECT_EQ(owner_.goings, 0);
    raw_->finish_writing();
    loop_.run_ready();
    EXPECT_EQ(owner_.closings, 1);
    EXPECT_EQ(owner_.goings, 1);
  }
  std::string reason() const { return owner_.why ? owner_.why->to_string() : "still open"; }

  SimLoop loop_;
  KeepingOwner owner_, peer_owner_;
  std::shared_ptr<Connection> connection_, peer_;
  std::unique_ptr<Stream> raw_;
};

OutgoingFrame frame_with(const TensorView& view) {
  return {.type = FrameType::tensors, .head = bytes_of("head"), .payload = {&view, 1}};
}

TEST_F(ConnectionTest, a_frame_larger_than_the_stream_arrives_in_the_memory_that_its_owner_named) {
  start_both();
  const std::vector<std::byte> payload(5'000'000, std::byte{42});
  const TensorView view = TensorView::of_bytes(payload);
  ASSERT_TRUE(connection_->send(frame_with(view)).ok());
  loop_.run_for(milliseconds(1));
  ASSERT_EQ(peer_owner_.frames.size(), 1u);
  EXPECT_EQ(peer_owner_.frames.front().payload, payload);
  EXPECT_EQ(peer_owner_.landing, payload);
  EXPECT_EQ(connection_->queued_bytes(), 0u);
  EXPECT_EQ(connection_->link().bytes_sent, peer_->link().bytes_received);
}

TEST_F(ConnectionTest, frames_keep_their_order_and_can_be_answered_from_inside_received) {
  start_both();
  peer_owner_.on_frame = [&] {
    const auto& head = peer_owner_.frames.back().head;
    ASSERT_TRUE(peer_->send({.type = FrameType::value, .head = head}).ok());
  };
  for (const char* text : {"one", "two", "three"}) {
    ASSERT_TRUE(connection_->send({.type = FrameType::value, .head = bytes_of(text)}).ok());
  }
  loop_.run_for(milliseconds(1));
  ASSERT_EQ(owner_.frames.size(), 3u);
  EXPECT_EQ(text_of(owner_.frames.front().head), "one");
  EXPECT_EQ(text_of(owner_.frames.back().head), "three");
}

TEST_F(ConnectionTest, the_send_queue_is_bounded_and_says_how_much_it_holds) {
  Limits limits;
  limits.send_queue_bytes_max = 300'000;
  start(limits);
  const std::vector<std::byte> payload(200'000);
  const TensorView view = TensorView::of_bytes(payload);
  ASSERT_TRUE(connection_->send(frame_with(view)).ok());
  EXPECT_EQ(connection_->send(frame_with(view)).error().kind, ErrorKind::overloaded);
  EXPECT_TRUE(connection_->open());
  EXPECT_EQ(connection_->queued_frames(), 1u);
  EXPECT_GT(connection_->queued_bytes(), 200'000u);
}

TEST_F(ConnectionTest, an_owner_is_told_when_what_it_queued_is_written) {
  start_both();
  const std::vector<std::byte> payload(1'000'000);
  const TensorView view = TensorView::of_bytes(payload);
  ASSERT_TRUE(connection_->send(frame_with(view)).ok());
  ASSERT_TRUE(connection_->send(frame_with(view)).ok());
  EXPECT_EQ(owner_.drains, 0);
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(owner_.drains, 1);
  EXPECT_EQ(connection_->queued_bytes(), 0u);
}

TEST_F(ConnectionTest, what_one_turn_sends_is_written_together) {
  start();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(connection_->send({.type = FrameType::value}).ok());
  EXPECT_EQ(hear(), "");
  loop_.run_ready();
  EXPECT_EQ(hear().size(), 3 * (kFrameHeaderBytes + kFrameChecksumBytes));
}

TEST_F(ConnectionTest, heartbeats_keep_an_idle_pair_alive_and_measure_the_round_trip) {
  start_both();
  loop_.run_for(std::chrono::hours(1));
  EXPECT_TRUE(connection_->open());
  EXPECT_TRUE(peer_->open());
  EXPECT_GT(connection_->link().round_trip, Duration::zero());
  EXPECT_TRUE(owner_.frames.empty()) << "heartbeats are not the owner's business";
}

TEST_F(ConnectionTest, a_peer_that_freezes_is_dropped_with_a_reason) {
  start();
  say(bytes_of_frame({.type = FrameType::value, .head = bytes_of("hello")}));
  loop_.run_for(seconds(30));
  ASSERT_EQ(owner_.closings, 1);
  EXPECT_NE(reason().find("no answer for"), std::string::npos) << reason();
}

TEST_F(ConnectionTest, a_peer_that_takes_no_bytes_is_dropped_with_a_reason) {
  start();
  say(bytes_of_frame({.type = FrameType::value, .head = bytes_of("hello")}));
  const std::vector<std::byte> payload(1'000'000);
  const TensorView view = TensorView::of_bytes(payload);
  ASSERT_TRUE(connection_->send(frame_with(view)).ok());
  loop_.run_for(seconds(30));
  ASSERT_EQ(owner_.closings, 1);
  EXPECT_NE(reason().find("took no bytes for"), std::string::npos) << reason();
}

TEST_F(ConnectionTest, after_its_own_long_stop_the_connection_lives_on) {
  start_both();
  loop_.run_for(seconds(60));
  loop_.freeze_for(std::chrono::hours(8));
  loop_.run_for(seconds(60));
  EXPECT_TRUE(connection_->open()) << reason();
  EXPECT_TRUE(peer_->open());
}

TEST_F(ConnectionTest, one_who_says_nothing_is_dropped) {
  start(Limits::stranger());
  for (int i = 0; i < 60 && owner_.closings == 0; ++i) {
    (void)hear();
    loop_.run_for(seconds(1));
  }
  ASSERT_EQ(owner_.closings, 1);
}

TEST_F(ConnectionTest, a_slow_loris_is_dropped_although_it_never_falls_silent) {
  start(Limits::stranger());
  const auto frame = bytes_of_frame({.type = FrameType::hello, .head = std::vector<std::byte>(5000)});
  std::size_t said = 0;
  for (; said < 120 && owner_.closings == 0; ++said) {
    say(Bytes(frame).subspan(said, 1));
    (void)hear();
    loop_.run_for(seconds(1));
  }
  ASSERT_EQ(owner_.closings, 1);
  EXPECT_LT(said, 20u);
  EXPECT_NE(reason().find("too slow"), std::string::npos) << reason();
}

TEST_F(ConnectionTest, a_large_frame_over_a_slow_but_honest_link_is_not_dropped) {
  start();
  const std::vector<std::byte> payload(600'000);
  const TensorView view = TensorView::of_bytes(payload);
  const auto frame = bytes_of_frame(frame_with(view));
  for (std::size_t at = 0; at < frame.size(); at += 10'000) {
    say(Bytes(frame).subspan(at, std::min<std::size_t>(10'000, frame.size() - at)));
    (void)hear();
    loop_.run_for(seconds(1));
  }
  EXPECT_EQ(owner_.frames.size(), 1u) << reason();
}

TEST_F(ConnectionTest, bad_bytes_close_the_connection_with_a_goodbye_that_says_why) {
  start();
  say(bytes_of("GET / HTTP/1.1\r\nHost: coordinator\r\n\r\n"));
  expect_parting();
  EXPECT_NE(reason().find("corrupt: not a w5xde frame"), std::string::npos) << reason();
  EXPECT_NE(hear().find("not a w5xde frame"), std::string::npos);
}

TEST_F(ConnectionTest, garbage_after_a_good_frame_closes_it_and_the_frame_was_delivered) {
  start();
  auto bytes = bytes_of_frame({.type = FrameType::value, .head = bytes_of("good")});
  bytes.insert(bytes.end(), 100, std::byte{0xee});
  say(bytes);
  EXPECT_EQ(owner_.frames.size(), 1u);
  expect_parting();
}

TEST_F(ConnectionTest, a_peer_that_does_not_close_is_not_waited_for_long) {
  start();
  say(bytes_of("GET / HTTP/1.1\r\nHost: coordinator\r\n\r\n"));
  EXPECT_EQ(owner_.goings, 0);
  loop_.run_for(seconds(10));
  EXPECT_EQ(owner_.goings, 1);
}

TEST_F(ConnectionTest, an_unknown_codec_is_refused_before_memory_is_asked_for) {
  start();
  const std::vector<std::byte> payload(100);
  const TensorView view = TensorView::of_bytes(payload);
  say(bytes_of_frame({.type = FrameType::tensors, .codec = 77, .payload = {&view, 1}}));
  EXPECT_EQ(owner_.places, 0);
  expect_parting();
  EXPECT_NE(reason().find("codec 77 is not known"), std::string::npos) << reason();
}

TEST_F(ConnectionTest, an_owner_s_refusal_of_a_frame_closes_for_that_reason) {
  start_both();
  peer_owner_.verdict = invalid("a lease for a step that is over");
  ASSERT_TRUE(connection_->send({.type = FrameType::value}).ok());
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(peer_owner_.why->message, "a lease for a step that is over");
  EXPECT_NE(reason().find("invalid: the other side left: a lease for a step that is over"),
            std::string::npos);
}

TEST_F(ConnectionTest, of_a_reason_of_several_lines_the_peer_is_told_the_first) {
  start_both();
  connection_->close(disconnected("the model failed\n  in line 8"));
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(peer_owner_.why->message, "the other side left: the model failed");
  EXPECT_EQ(owner_.why->message, "the model failed\n  in line 8");
}

TEST_F(ConnectionTest, close_sends_what_is_queued_and_then_the_reason) {
  start_both();
  const std::vector<std::byte> payload(1'000'000);
  const TensorView view = TensorView::of_bytes(payload);
  ASSERT_TRUE(connection_->send(frame_with(view)).ok());
  connection_->close(disconnected("training is over"));
  EXPECT_EQ(connection_->send({}).error().kind, ErrorKind::disconnected);
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(peer_owner_.frames.size(), 1u);
  EXPECT_EQ(peer_owner_.why->to_string(), "disconnected: the other side left: training is over");
  EXPECT_EQ(owner_.why->message, "training is over");
  EXPECT_EQ(owner_.closings, 1);
  EXPECT_EQ(peer_owner_.closings, 1);
}

TEST_F(ConnectionTest, a_goodbye_is_heard_although_a_write_failed_before_it_was_read) {
  start();
  say(bytes_of_frame({.type = FrameType::value, .head = bytes_of("hello")}));
  ASSERT_TRUE(connection_->send({.type = FrameType::value}).ok());  // written first thing in the next turn
  Head head;
  encode(Goodbye{ErrorKind::disconnected, "the run is finished"}, head);
  const auto goodbye = bytes_of_frame({.type = FrameType::goodbye, .head = head});
  const iovec part{const_cast<std::byte*>(goodbye.data()), goodbye.size()};
  ASSERT_TRUE(raw_->write({&part, 1}).ok());
  raw_->close();
  loop_.run_ready();
  EXPECT_EQ(reason(), "disconnected: the other side left: the run is finished");
  EXPECT_TRUE(connection_->goodbye_received());
  EXPECT_EQ(owner_.closings, 1);
}

TEST_F(ConnectionTest, after_bad_bytes_from_a_peer_that_is_gone_nothing_more_is_read) {
  start();
  auto bytes = bytes_of_frame({.type = FrameType::value, .head = bytes_of("hello")});
  bytes[bytes.size() - 1] ^= std::byte{1};
  const iovec part{bytes.data(), bytes.size()};
  ASSERT_TRUE(raw_->write({&part, 1}).ok());
  raw_->close();  // the goodbye cannot be written
  loop_.run_ready();
  EXPECT_TRUE(reason().starts_with("corrupt: ")) << reason();
  EXPECT_EQ(owner_.closings, 1);
}

TEST_F(ConnectionTest, closing_towards_a_peer_that_reads_nothing_ends_all_the_same) {
  start();
  const std::vector<std::byte> payload(1'000'000);
  const TensorView view = TensorView::of_bytes(payload);
  ASSERT_TRUE(connection_->send(frame_with(view)).ok());
  connection_->close(disconnected("training is over"));
  loop_.run_for(seconds(60));
  EXPECT_EQ(owner_.closings, 1);
  EXPECT_EQ(owner_.why->message, "training is over");
}

// The peer is played by hand: each second it sends a heartbeat and reads `bytes` bytes, until it is let go
// of.
class NeverReadingTest : public ConnectionTest {
 protected:
  void start_with_a_full_queue() {
    start();
    ASSERT_TRUE(connection_->send(frame_with(view_)).ok());
  }
  void send_and_read(int seconds_max, std::size_t bytes) {
    Head head;
    encode(Heartbeat{1}, head);
    auto pong = bytes_of_frame({.type = FrameType::pong, .head = head});
    std::vector<std::byte> heard(bytes);
    const iovec out{pong.data(), pong.size()}, in{heard.data(), heard.size()};
    for (int i = 0; i < seconds_max && owner_.goings == 0; ++i) {
      (void)raw_->write({&out, 1});
      if (bytes > 0) (void)raw_->read({&in, 1});
      loop_.run_for(seconds(1));
    }
  }
  const std::vector<std::byte> payload_ = std::vector<std::byte>(1'000'000);
  const TensorView view_ = TensorView::of_bytes(payload_);
};

TEST_F(NeverReadingTest, a_peer_that_sends_and_never_reads_is_dropped) {
  start_with_a_full_queue();
  send_and_read(60, 0);
  EXPECT_EQ(owner_.goings, 1);
  EXPECT_NE(reason().find("took no bytes for"), std::string::npos) << reason();
}

TEST_F(NeverReadingTest, closing_towards_a_peer_that_sends_and_never_reads_has_an_end) {
  start_with_a_full_queue();
  connection_->close(disconnected("training is over"));
  send_and_read(60, 0);
  EXPECT_EQ(owner_.goings, 1);
  EXPECT_EQ(owner_.why->message, "training is over");
}

TEST_F(NeverReadingTest, closing_towards_a_peer_that_reads_a_byte_a_second_has_an_end) {
  start_with_a_full_queue();
  connection_->close(disconnected("training is over"));
  send_and_read(60, 1);
  EXPECT_EQ(owner_.goings, 1);
}

TEST_F(ConnectionTest, a_flood_of_pings_that_never_reads_is_cut_off) {
  start();
  Head head;
  encode(Heartbeat{1}, head);
  const auto ping = bytes_of_frame({.type = FrameType::ping, .head = head});
  for (int i = 0; i < 10'000 && owner_.closings == 0 && connection_->open(); ++i) say(ping);
  loop_.run_for(seconds(60));
  ASSERT_EQ(owner_.closings, 1);
  EXPECT_NE(reason().find("pings come faster"), std::string::npos) << reason();
}

TEST_F(ConnectionTest, an_owner_that_has_detached_hears_nothing_more) {
  start_both();
  connection_->detach();
  ASSERT_TRUE(peer_->send({.type = FrameType::value}).ok());
  loop_.run_for(seconds(1));
  EXPECT_EQ(owner_.frames.size(), 0u);
  EXPECT_EQ(owner_.closings, 0);
  EXPECT_EQ(peer_owner_.closings, 1);
}

TEST_F(ConnectionTest, an_owner_may_let_go_of_its_connection_inside_received) {
  start_both();
  owner_.on_frame = [&] {
    connection_->detach();
    connection_.reset();
  };
  ASSERT_TRUE(peer_->send({.type = FrameType::value}).ok());
  ASSERT_TRUE(peer_->send({.type = FrameType::value}).ok());
  loop_.run_for(seconds(1));
  EXPECT_EQ(owner_.frames.size(), 1u);
}

TEST_F(ConnectionTest, a_stranger_s_limits_hold_until_they_are_raised) {
  start(Limits::stranger());
  const std::vector<std::byte> payload(1);
  const TensorView view = TensorView::of_bytes(payload);
  const auto frame = bytes_of_frame(frame_with(view));
  connection_->set_limits(Limits());
  say(frame);
  EXPECT_EQ(owner_.frames.size(), 1u);
  connection_->set_limits(Limits::stranger());
  say(frame);
  expect_parting();
  EXPECT_NE(reason().find("a payload of 1 bytes; at most 0"), std::string::npos) << reason();
}

}  // namespace
}  // namespace w5xde
