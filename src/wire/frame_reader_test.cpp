#include "wire/frame_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "support/frames.h"

namespace w5xde {
namespace {

std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed + (i >> 9));
  return bytes;
}

std::vector<std::byte> frame_of(Bytes head, Bytes payload, FrameType type = FrameType::tensors) {
  const TensorView view = TensorView::of_bytes(payload);
  return bytes_of_frame({.type = type, .head = head, .payload = {&view, payload.empty() ? 0u : 1u}});
}

TEST(FrameReaderTest, the_bytes_of_a_whole_frame_are_pinned) {
  const std::vector<std::byte> frame = frame_of(bytes_of("head"), bytes_of("payload"), FrameType::value);
  const std::string expected(
      "W5XD\x01\x06\x00\x00"
      "\x04\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00",
      20);
  EXPECT_EQ(text_of(Bytes(frame).first(20)), expected);
  EXPECT_EQ(text_of(Bytes(frame).subspan(24, 11)), "headpayload");
  EXPECT_EQ(load<std::uint64_t>(frame.data() + 35), hash64(bytes_of("headpayload")));
  EXPECT_EQ(frame.size(), 43u);
}

TEST(FrameReaderTest, a_large_payload_is_read_straight_to_where_the_sink_placed_it) {
  const auto payload = pattern(1 * kMiB, 3);
  const auto frame = frame_of(bytes_of("h"), payload);
  Limits limits;
  KeepingSink sink;
  FrameReader reader(limits, sink);
  // The header and head arrive first, so that the sink has been asked before the payload comes.
  ASSERT_TRUE(feed(reader, Bytes(frame).first(25), 25).ok());
  const auto space = reader.space();
  EXPECT_EQ(space[0].iov_base, sink.landing.data());
  ASSERT_TRUE(feed(reader, Bytes(frame).subspan(25), frame.size()).ok());
  ASSERT_EQ(sink.frames.size(), 1u);
  EXPECT_EQ(sink.frames.front().payload, payload);
}

TEST(FrameReaderTest, space_is_as_much_as_was_asked_for_at_most) {
  const auto payload = pattern(3 * kMiB, 3);
  const auto frame = frame_of(bytes_of("h"), payload);
  for (const std::size_t most : {std::size_t{1}, std::size_t{4096}, kMiB, 3 * kMiB, 3 * kMiB + 100}) {
    KeepingSink sink;
    FrameReader reader(Limits(), sink);
    const auto room = [&] {
      std::size_t sum = 0;
      for (const iovec& part : reader.space(most)) sum += part.iov_len;
      return sum;
    };
    EXPECT_LE(room(), most) << "of the staging buffer";
    ASSERT_TRUE(feed(reader, Bytes(frame).first(25), 25).ok());
    EXPECT_EQ(room(), most) << "of the payload, and what is staged behind it";
    ASSERT_TRUE(feed(reader, Bytes(frame).subspan(25), frame.size()).ok());
    EXPECT_EQ(sink.frames.front().payload, payload);
  }
}

TEST(FrameReaderTest, many_small_frames_come_out_of_one_read) {
  std::vector<std::byte> stream;
  for (int i = 0; i < 100; ++i) {
    const auto frame = frame_of(bytes_of("abc"), bytes_of("payload"));
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  KeepingSink sink;
  FrameReader reader(Limits(), sink);
  ASSERT_TRUE(feed(reader, stream, stream.size()).ok());
  EXPECT_EQ(sink.frames.size(), 100u);
  EXPECT_EQ(reader.frames_received(), 100u);
  EXPECT_EQ(reader.frame_bytes_pending(), 0u);
}

TEST(FrameReaderTest, every_flipped_byte_of_a_frame_is_noticed) {
  const auto frame = frame_of(bytes_of("head"), pattern(300, 1));
  for (std::size_t at = 0; at < frame.size(); ++at) {
    auto damaged = frame;
    damaged[at] ^= std::byte{0x10};
    KeepingSink sink;
    FrameReader reader(Limits(), sink);
    const Status status = feed(reader, damaged, damaged.size());
    EXPECT_FALSE(status.ok()) << "byte " << at;
    EXPECT_TRUE(sink.frames.empty()) << "byte " << at;
  }
}

TEST(FrameReaderTest, a_truncated_frame_is_never_handed_on) {
  const auto frame = frame_of(bytes_of("head"), pattern(300, 1));
  for (std::size_t size = 0; size < frame.size(); ++size) {
    KeepingSink sink;
    FrameReader reader(Limits(), sink);
    ASSERT_TRUE(feed(reader, Bytes(frame).first(size), size + 1).ok());
    EXPECT_TRUE(sink.frames.empty());
    EXPECT_EQ(reader.frame_bytes_pending(), size);
  }
}

TEST(FrameReaderTest, garbage_after_a_good_frame_is_refused_and_the_frame_kept) {
  auto stream = frame_of(bytes_of("head"), bytes_of("payload"));
  const auto garbage = pattern(64, 9);
  stream.insert(stream.end(), garbage.begin(), garbage.end());
  KeepingSink sink;
  FrameReader reader(Limits(), sink);
  const Status status = feed(reader, stream, stream.size());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::corrupt);
  EXPECT_EQ(sink.frames.size(), 1u);
}

TEST(FrameReaderTest, a_payload_over_the_limit_is_refused_before_any_memory_is_asked_for) {
  const auto frame = frame_of({}, pattern(1001, 1));
  Limits limits;
  limits.payload_bytes_max = 1000;
  KeepingSink sink;
  FrameReader reader(limits, sink);
  const Status status = feed(reader, frame, frame.size());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::overloaded);
  EXPECT_EQ(sink.landing.capacity(), 0u);
}

TEST(FrameReaderTest, new_limits_hold_from_the_next_frame_on) {
  const auto frame = frame_of({}, pattern(1001, 1));
  KeepingSink sink;
  FrameReader reader(Limits(), sink);
  ASSERT_TRUE(feed(reader, frame, frame.size()).ok());
  reader.set_limits(Limits::stranger());
  EXPECT_EQ(feed(reader, frame, frame.size()).error().kind, ErrorKind::overloaded);
}

RC_GTEST_PROP(FrameReaderTest, frames_survive_being_cut_anywhere, ()) {
  std::vector<std::byte> stream;
  std::vector<std::pair<std::vector<std::byte>, std::vector<std::byte>>> sent;
  const auto count = *rc::gen::inRange(1, 8);
  for (int i = 0; i < count; ++i) {
    const auto head = pattern(*rc::gen::inRange<std::size_t>(0, 40), 1);
    const auto payload = pattern(*rc::gen::element<std::size_t>(0, 1, 100, 4096, 20000, 300000), 2);
    const auto frame = frame_of(head, payload);
    stream.insert(stream.end(), frame.begin(), frame.end());
    sent.emplace_back(head, payload);
  }
  KeepingSink sink;
  FrameReader reader(Limits(), sink);
  RC_ASSERT(feed(reader, stream, *rc::gen::element<std::size_t>(1, 7, 24, 4096, 70000, 1 << 20)).ok());
  RC_ASSERT(sink.frames.size() == sent.size());
  for (const auto& [head, payload] : sent) {
    RC_ASSERT(sink.frames.front().head == head);
    RC_ASSERT(sink.frames.front().payload == payload);
    sink.frames.pop_front();
  }
}

}  // namespace
}  // namespace w5xde
