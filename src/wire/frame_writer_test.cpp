#include "wire/frame_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "support/frames.h"
#include "wire/messages.h"

namespace w5xde {
namespace {

Bytes bytes_of_piece(const iovec& piece) {
  return {static_cast<const std::byte*>(piece.iov_base), piece.iov_len};
}

std::size_t total_of(std::span<const iovec> pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), std::size_t{0},
                         [](std::size_t sum, const iovec& piece) { return sum + piece.iov_len; });
}

TEST(FrameWriterTest, a_contiguous_tensor_is_handed_out_as_its_own_memory) {
  const std::vector<float> values(1000, 1.5f);
  const TensorView view(std::as_bytes(std::span(values)), DType::f32, Shape{1000});
  FrameWriter writer{Limits()};
  ASSERT_TRUE(writer.push({.payload = {&view, 1}}).ok());
  const auto pieces = writer.stage();
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[1].iov_base, values.data());
  EXPECT_EQ(pieces[1].iov_len, 4000u);
}

TEST(FrameWriterTest, several_small_frames_are_staged_for_one_write) {
  FrameWriter writer{Limits()};
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(writer.push({.head = bytes_of("head")}).ok());
  EXPECT_EQ(total_of(writer.stage()), 5u * (kFrameHeaderBytes + 4 + kFrameChecksumBytes));
}

TEST(FrameWriterTest, a_strided_tensor_arrives_in_row_major_order_whatever_its_size) {
  // A transposed 300 × 500 matrix: larger than one block of gathering.
  std::vector<std::int32_t> memory(300 * 500);
  std::iota(memory.begin(), memory.end(), 0);
  const std::vector<std::int64_t> strides = {1, 300};
  const TensorView transposed(reinterpret_cast<const std::byte*>(memory.data()), DType::i32, Shape{300, 500},
                              strides);
  const auto frame = bytes_of_frame({.payload = {&transposed, 1}});
  KeepingSink sink;
  FrameReader reader(Limits(), sink);
  ASSERT_TRUE(feed(reader, frame, frame.size()).ok());
  ASSERT_EQ(sink.frames.size(), 1u);
  const auto& payload = sink.frames.front().payload;
  for (std::int32_t row = 0; row < 300; ++row) {
    for (std::int32_t column = 0; column < 500; ++column) {
      const auto at = static_cast<std::size_t>(row * 500 + column) * sizeof(std::int32_t);
      ASSERT_EQ(load<std::int32_t>(payload.data() + at), column * 300 + row);
    }
  }
}

TEST(FrameWriterTest, tensors_start_at_multiples_of_eight_with_zeros_between) {
  const std::vector<std::uint8_t> small = {1, 2, 3};
  const std::vector<double> wide = {4.0};
  const std::vector<TensorView> views = {TensorView(std::as_bytes(std::span(small)), DType::u8, Shape{3}),
                                         TensorView(std::as_bytes(std::span(wide)), DType::f64, Shape{1})};
  const auto frame = bytes_of_frame({.payload = views});
  KeepingSink sink;
  FrameReader reader(Limits(), sink);
  ASSERT_TRUE(feed(reader, frame, frame.size()).ok());
  const TensorList tensors = {TensorDescriptor::of(views[0]), TensorDescriptor::of(views[1])};
  const auto& payload = sink.frames.front().payload;
  ASSERT_EQ(payload.size(), payload_bytes_of(tensors));
  EXPECT_EQ(payload[3], std::byte{0});
  EXPECT_EQ(load<double>(views_of(tensors, payload)[1].bytes().data()), 4.0);
}

TEST(FrameWriterTest, an_urgent_frame_goes_before_those_not_begun_and_never_into_one) {
  const std::vector<std::byte> large(1 * kMiB);
  const TensorView view = TensorView::of_bytes(large);
  FrameWriter writer{Limits()};
  ASSERT_TRUE(writer.push({.payload = {&view, 1}}).ok());
  ASSERT_TRUE(writer.push({.type = FrameType::value, .head = bytes_of("second")}).ok());
  const std::size_t begun = total_of(writer.stage());
  writer.consume(begun);
  ASSERT_TRUE(writer.push({.type = FrameType::ping, .head = bytes_of("urgent"), .urgent = true}).ok());
  std::vector<std::byte> rest;
  for (auto pieces = writer.stage(); !pieces.empty(); pieces = writer.stage()) {
    const Bytes bytes = bytes_of_piece(pieces[0]);
    rest.insert(rest.end(), bytes.begin(), bytes.end());
    writer.consume(bytes.size());
  }
  const auto text = text_of(rest);
  EXPECT_LT(text.find("urgent"), text.find("second"));
  EXPECT_GT(text.find("urgent"), large.size() - begun);
}

TEST(FrameWriterTest, a_full_queue_refuses_and_takes_again_when_drained) {
  Limits limits;
  limits.send_queue_bytes_max = 100;
  FrameWriter writer(limits);
  const std::vector<std::byte> payload(60);
  const TensorView view = TensorView::of_bytes(payload);
  ASSERT_TRUE(writer.push({.payload = {&view, 1}}).ok());
  EXPECT_EQ(writer.queued_bytes(), 92u);
  EXPECT_EQ(writer.push({}).error().kind, ErrorKind::overloaded);
  EXPECT_EQ(writer.queued_frames(), 1u);
  writer.consume(total_of(writer.stage()));
  EXPECT_TRUE(writer.empty());
  EXPECT_EQ(writer.queued_bytes(), 0u);
  EXPECT_TRUE(writer.push({.payload = {&view, 1}}).ok());
}

TEST(FrameWriterTest, a_queue_of_many_frames_refuses_too) {
  Limits limits;
  limits.send_queue_frames_max = 2;
  FrameWriter writer(limits);
  EXPECT_TRUE(writer.push({}).ok());
  EXPECT_TRUE(writer.push({}).ok());
  EXPECT_EQ(writer.push({}).error().kind, ErrorKind::overloaded);
}

TEST(FrameWriterTest, memory_is_kept_until_the_last_byte_is_written_and_no_longer) {
  auto memory = std::make_shared<std::vector<std::byte>>(100);
  const TensorView view = TensorView::of_bytes(*memory);
  FrameWriter writer{Limits()};
  ASSERT_TRUE(writer.push({.payload = {&view, 1}, .keep = memory}).ok());
  const std::weak_ptr<std::vector<std::byte>> watched = memory;
  memory.reset();
  writer.consume(total_of(writer.stage()) - 1);
  EXPECT_FALSE(watched.expired());
  writer.consume(total_of(writer.stage()));
  EXPECT_TRUE(watched.expired());
}

TEST(FrameWriterTest, frames_that_share_a_checksum_are_hashed_once) {
  const std::vector<std::byte> payload(3 * kMiB, std::byte{7});
  const TensorView view = TensorView::of_bytes(payload);
  const auto frame = [&](std::shared_ptr<std::optional<std::uint64_t>> checksum) {
    return bytes_of_frame({.payload = {&view, 1}, .checksum = std::move(checksum)});
  };
  const auto checksum = std::make_shared<std::optional<std::uint64_t>>();
  const auto alone = frame(nullptr);
  EXPECT_EQ(frame(checksum), alone);
  ASSERT_TRUE(checksum->has_value());
  EXPECT_EQ(frame(checksum), alone);
  **checksum += 1;  // believed, not computed again
  EXPECT_NE(frame(checksum), alone);
}

}  // namespace
}  // namespace w5xde
