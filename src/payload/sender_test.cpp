#include "payload/sender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "payload/receiver.h"
#include "wire/tensor_list.h"

namespace w5xde {
namespace {

// A link to one who expects payloads that have, decoded, a length that it knows.
class Receiving final : public FrameSender {
 public:
  Receiving(std::size_t bytes, ThreadPool* pool, const Clock& clock)
      : raw(bytes, std::byte{0xaa}), receiver(pool, clock) {}
  Status send(const OutgoingFrame& frame) override {
    const FrameHeader header{.type = frame.type,
                             .codec = frame.codec,
                             .shuffle_width = frame.shuffle_width,
                             .payload_bytes = payload_bytes_of(frame.payload)};
    const auto place = receiver.place(header, {}, {raw, tensors});
    if (!place.ok()) return refuse(place.error());
    auto at = place->begin();
    for (const TensorView& tensor : frame.payload) at = std::ranges::copy(tensor.bytes(), at).out;
    if (Status status = receiver.finish(header, *place, {}, {raw, tensors}); !status.ok())
      return refuse(status.error());
    last = header;
    return {};
  }
  double outgoing_bytes_per_second() override { return 0; }

  std::vector<std::byte> raw;
  TensorList tensors;
  PayloadReceiver receiver;
  std::optional<FrameHeader> last;
  std::string why = "taken";

 private:
  Status refuse(const Error& error) {
    why = error.to_string();
    return {};
  }
};

std::vector<std::byte> compressible(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i / 64 % 7);
  return made;
}

std::vector<std::byte> noise(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  Random random(bytes);
  for (std::byte& byte : made) byte = static_cast<std::byte>(random.next());
  return made;
}

class SenderAndReceiverTest : public testing::Test {
 protected:
  // Sends `raw` to one that expects `expected` bytes.
  void send(const SectionCodec& codec, const std::vector<std::byte>& raw, std::size_t expected,
            ThreadPool* pool = nullptr) {
    receiving_.emplace(expected, pool, clock_);
    sender_.emplace(pool, clock_);
    const auto kept = std::make_shared<std::vector<std::byte>>(raw);
    const TensorView view = TensorView::of_bytes(*kept);
    ASSERT_TRUE(sender_
                    ->send(*receiving_, FrameType::tensors, {},
                           {.tensors = {&view, 1}, .keep = kept, .lossless = {.fixed = &codec}})
                    .ok());
    EXPECT_EQ(kept.use_count(), 1) << "the memory is free once it is written";
  }

  SteadyClock clock_;
  std::optional<Receiving> receiving_;
  std::optional<PayloadSender> sender_;
};

TEST_F(SenderAndReceiverTest, every_codec_brings_back_what_was_sent) {
  ThreadPool pool(2);
  for (const char* name : {"none", "zlib:1", "zlib:6", "lz4", "lz4-frame", "zstd:-3", "zstd:3"}) {
    const SectionCodec codec{.lossless = parse_lossless(name).value(), .shuffle_width = 4};
    for (const std::size_t bytes : {1u, 63u, 100'000u, 1'000'000u}) {
      for (const auto& raw : {compressible(bytes), noise(bytes)}) {
        for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
          SCOPED_TRACE(std::string(name) + " " + std::to_string(bytes));
          ASSERT_NO_FATAL_FAILURE(send(codec, raw, bytes, threads));
          ASSERT_TRUE(receiving_->last.has_value()) << receiving_->why;
          EXPECT_EQ(receiving_->raw, raw);
        }
      }
    }
  }
}

TEST_F(SenderAndReceiverTest, what_gets_smaller_travels_smaller_and_what_does_not_travels_as_it_is) {
  const SectionCodec codec{.lossless = parse_lossless("zstd:3").value()};
  send(codec, compressible(100'000), 100'000);
  EXPECT_EQ(receiving_->last->codec, static_cast<std::uint8_t>(LosslessKind::zstd));
  EXPECT_LT(receiving_->last->payload_bytes, 20'000u);
  EXPECT_EQ(sender_->stats().raw_bytes, 100'000u);
  EXPECT_EQ(sender_->stats().wire_bytes, receiving_->last->payload_bytes);
  EXPECT_EQ(receiving_->receiver.stats().raw_bytes, 100'000u);
  EXPECT_EQ(receiving_->receiver.stats().wire_bytes, receiving_->last->payload_bytes);

  send(codec, noise(100'000), 100'000);
  EXPECT_EQ(receiving_->last->codec, 0);
  EXPECT_EQ(receiving_->last->payload_bytes, 100'000u);
  EXPECT_EQ(sender_->stats().wire_bytes, 100'000u);
}

TEST_F(SenderAndReceiverTest, a_payload_of_another_length_is_refused) {
  for (const char* name : {"none", "zlib", "lz4", "lz4-frame", "zstd"}) {
    const SectionCodec codec{.lossless = parse_lossless(name).value()};
    for (const std::size_t expected : {999u, 1001u, 100u, 5000u}) {
      SCOPED_TRACE(std::string(name) + " " + std::to_string(expected));
      send(codec, compressible(1000), expected);
      EXPECT_TRUE(receiving_->why.starts_with("corrupt: ")) << receiving_->why;
    }
  }
}

TEST_F(SenderAndReceiverTest, a_section_longer_than_any_of_its_payload_takes_no_memory) {
  Receiving receiving(100, nullptr, clock_);
  const auto memory = noise(1000);
  const TensorView view = TensorView::of_bytes(memory);
  ASSERT_TRUE(receiving.send({.type = FrameType::tensors, .codec = 4, .payload = {&view, 1}}).ok());
  EXPECT_EQ(receiving.why, "corrupt: a tensors frame has 1000 bytes for a payload of 100");
}

TEST_F(SenderAndReceiverTest, a_section_that_is_none_is_refused) {
  Receiving receiving(1000, nullptr, clock_);
  const auto memory = noise(900);
  const TensorView view = TensorView::of_bytes(memory);
  ASSERT_TRUE(receiving.send({.type = FrameType::tensors, .codec = 4, .payload = {&view, 1}}).ok());
  EXPECT_TRUE(receiving.why.starts_with("corrupt: ")) << receiving.why;
}

}  // namespace
}  // namespace w5xde
