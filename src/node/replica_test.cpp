#include "node/replica.h"

#include <gtest/gtest.h>

#include <numeric>

#include "payload/block_encoder.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kFloats = 64, kBuffers = 16;

class ReplicaTest : public testing::Test {
 protected:
  BlockShape shape_{BlockLayout::make({{"w", Shape{8, 8}}}, 1 << 20).value(), kFloats + kBuffers};
  Replica replica_{shape_};
  SteadyClock clock_;
  PayloadReceiver receiver_{nullptr, clock_};

  // What came of a frame: "whole", "more", or the error.
  std::string say(const Parameters& parameters, Bytes payload) {
    const FrameHeader header{.type = FrameType::parameters, .payload_bytes = payload.size()};
    const auto place = replica_.place(header, parameters, receiver_);
    if (!place.ok()) return place.error().to_string();
    std::ranges::copy(payload, place->begin());
    const auto whole = replica_.finish(header, *place, receiver_);
    if (!whole.ok()) return whole.error().to_string();
    return *whole ? "whole" : "more";
  }
  static Parameters flat(std::uint64_t version, std::uint64_t first, std::int64_t count) {
    return {.version = version,
            .first_float = first,
            .floats_total = kFloats + kBuffers,
            .tensors = {{DType::f32, Shape{count}}}};
  }
  std::string say_whole(std::uint64_t version, const std::vector<float>& floats) {
    return say(flat(version, 0, static_cast<std::int64_t>(floats.size())), std::as_bytes(std::span(floats)));
  }
  std::string say_difference(std::uint64_t base, std::uint64_t version, const std::vector<float>& floats,
                             const GradientCodec& codec) {
    BlockEncoder encoder(shape_, 0);
    const Formed formed = encoder.encode(floats, codec);
    Parameters parameters = flat(version, 0, kFloats + kBuffers);
    parameters.base = base;
    parameters.coding = formed.coding;
    return say(parameters, formed.bytes);
  }
  float at(std::size_t i) const { return reinterpret_cast<const float*>(replica_.state()->data())[i]; }

  static std::vector<float> counting() {
    std::vector<float> floats(kFloats + kBuffers);
    std::iota(floats.begin(), floats.end(), 0.0F);
    return floats;
  }
};

TEST_F(ReplicaTest, a_version_in_ranges_is_there_when_the_last_one_is) {
  const auto floats = counting();
  const Bytes bytes = std::as_bytes(std::span(floats));
  EXPECT_EQ(say(flat(3, 0, 40), bytes.first(160)), "more");
  EXPECT_EQ(replica_.state(), nullptr);
  EXPECT_EQ(say(flat(3, 40, 40), bytes.last(160)), "whole");
  EXPECT_EQ(replica_.version(), 3u);
  EXPECT_EQ(at(79), 79.0F);
}

TEST_F(ReplicaTest, a_difference_is_added_to_parameters_and_takes_the_place_of_buffers) {
  EXPECT_EQ(say_whole(3, counting()), "whole");
  const Replica::State before = replica_.state();
  std::vector<float> change(kFloats + kBuffers, 2.0F);
  EXPECT_EQ(say_difference(3, 7, change, {.kind = GradientKind::bf16}), "whole");
  EXPECT_EQ(replica_.version(), 7u);
  EXPECT_EQ(at(5), 7.0F);
  EXPECT_EQ(at(kFloats + 1), 2.0F);
  EXPECT_EQ(reinterpret_cast<const float*>(before->data())[5], 5.0F) << "a computation may hold it";
}

TEST_F(ReplicaTest, a_difference_in_parts_is_there_when_the_last_one_is) {
  EXPECT_EQ(say_whole(3, counting()), "whole");
  const std::vector<float> change(kFloats + kBuffers, 2.0F);
  const auto say_part = [&](std::uint64_t first, std::uint64_t count) {
    const FloatRange range{first, count};
    const Formed formed =
        form_part(std::span(change).subspan(first, count), shape_, range, {.kind = GradientKind::bf16});
    Parameters parameters = flat(4, first, static_cast<std::int64_t>(count));
    parameters.base = 3;
    parameters.coding = formed.coding;
    return say(parameters, formed.bytes);
  };
  EXPECT_EQ(say_part(0, 30), "more");
  EXPECT_EQ(say_part(30, 40), "more") << "parameters and buffers";
  EXPECT_EQ(replica_.version(), 3u);
  EXPECT_EQ(at(5), 5.0F) << "what is there stays there meanwhile";
  EXPECT_EQ(say_part(70, 10), "whole");
  EXPECT_EQ(replica_.version(), 4u);
  EXPECT_EQ(at(5), 7.0F);
  EXPECT_EQ(at(63), 65.0F);
  EXPECT_EQ(at(64), 2.0F) << "buffers come as they are";
  EXPECT_EQ(at(79), 2.0F);
}

TEST_F(ReplicaTest, a_version_that_is_given_up_halfway_begins_anew) {
  EXPECT_EQ(say_whole(3, counting()), "whole");
  const auto floats = counting();
  const Bytes bytes = std::as_bytes(std::span(floats));
  EXPECT_EQ(say(flat(4, 0, 40), bytes.first(160)), "more");
  EXPECT_EQ(say(flat(4, 0, 80), bytes), "whole");
  EXPECT_EQ(say(flat(5, 0, 40), bytes.first(160)), "more");
  EXPECT_EQ(say(flat(6, 40, 40), bytes.last(160)), "corrupt: parameters with a hole in them");
}

TEST_F(ReplicaTest, differences_to_what_is_not_here_are_refused) {
  const std::vector<float> change(kFloats + kBuffers, 2.0F);
  EXPECT_EQ(say_difference(3, 4, change, {.kind = GradientKind::bf16}),
            "corrupt: a difference to version 3, which is not the one here");
  EXPECT_EQ(say_whole(3, counting()), "whole");
  EXPECT_EQ(say_difference(2, 4, change, {.kind = GradientKind::bf16}),
            "corrupt: a difference to version 2, which is not the one here");
  EXPECT_EQ(say_difference(kNoVersion, 4, change, {.kind = GradientKind::bf16}),
            "corrupt: parameters through a gradient codec that are no difference");
}

TEST_F(ReplicaTest, holes_and_other_models_are_refused) {
  const auto floats = counting();
  const Bytes bytes = std::as_bytes(std::span(floats));
  EXPECT_EQ(say(flat(3, 40, 40), bytes.last(160)), "corrupt: parameters with a hole in them");
  Parameters other = flat(3, 0, 40);
  other.floats_total = 81;
  EXPECT_EQ(say(other, bytes.first(160)), "corrupt: parameters of 81 floats; this model has 80");
}

TEST_F(ReplicaTest, a_coded_payload_longer_than_any_is_refused_before_it_takes_memory) {
  EXPECT_EQ(say_whole(3, counting()), "whole");
  Parameters parameters = flat(4, 0, kFloats + kBuffers);
  parameters.base = 3;
  parameters.coding = {.form = Form::gradient,
                       .gradient_kind = static_cast<std::uint8_t>(GradientKind::int8),
                       .bytes = 1 << 20};
  EXPECT_EQ(say(parameters, std::vector<std::byte>(1 << 20)),
            "corrupt: a parameters frame with 1048576 bytes for 320");
}

}  // namespace
}  // namespace w5xde
