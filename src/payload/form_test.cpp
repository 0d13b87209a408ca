#include "payload/form.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "payload/block_encoder.h"
#include "payload/encoding.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kParameters = 5 * kGradientChunk + 64, kBuffers = 32;

class FormTest : public testing::Test {
 protected:
  const BlockShape shape_{BlockLayout::make({{"w", Shape{kParameters}}}, 1 << 20).value(),
                          kParameters + kBuffers};
  std::vector<float> floats_ = std::vector<float>(shape_.floats);

  void SetUp() override {
    Random random(1);
    for (float& value : floats_) value = static_cast<float>(random.normal());
  }
  std::vector<float> back(const Formed& formed, FloatRange range) const {
    std::vector<float> got(range.count);
    const TensorList tensors = {{DType::f32, Shape{static_cast<std::int64_t>(range.count)}}};
    const Target target{std::as_writable_bytes(std::span(got)), tensors, &shape_, range.first};
    EXPECT_LE(formed.bytes.size(), formed_bytes_max(formed.coding, target));
    EXPECT_TRUE(unform(formed.bytes, formed.coding, target).ok());
    return got;
  }
};

TEST_F(FormTest, parts_are_what_the_whole_would_have_been) {
  for (const GradientKind kind : {GradientKind::fp16, GradientKind::bf16, GradientKind::int8}) {
    const GradientCodec codec{.kind = kind};
    BlockEncoder encoder(shape_, 0);
    const Formed whole = encoder.encode(floats_, codec);
    const auto expected = back(whole, {0, shape_.floats});
    std::vector<float> cut, formed;
    for (FloatRange part = part_at(0, 2 * kGradientChunk, shape_); part.count > 0;
         part = part_at(part.end(), 2 * kGradientChunk, shape_)) {
      std::ranges::copy(back(part_of(whole, shape_, part), part), std::back_inserter(cut));
      const auto floats = std::span(floats_).subspan(part.first, part.count);
      std::ranges::copy(back(form_part(floats, shape_, part, codec), part), std::back_inserter(formed));
    }
    EXPECT_EQ(cut, expected) << to_string(codec);
    EXPECT_EQ(formed, expected) << to_string(codec);
    EXPECT_TRUE(
        std::ranges::equal(std::span(expected).subspan(kParameters), std::span(floats_).subspan(kParameters)))
        << "buffers are exact";
  }
}

TEST_F(FormTest, a_part_of_what_has_none_has_no_bytes) {
  const TensorList tensors = {{DType::f32, Shape{static_cast<std::int64_t>(kGradientChunk)}}};
  std::vector<float> floats(kGradientChunk);
  const Target target{std::as_writable_bytes(std::span(floats)), tensors, &shape_, kGradientChunk};
  for (const GradientKind kind : {GradientKind::onebit, GradientKind::topk, GradientKind::powersgd}) {
    const Coding coding = to_wire({.kind = kind, .rank = 1}, 0);
    EXPECT_EQ(formed_bytes_max(coding, target), 0u);
    EXPECT_FALSE(unform({}, coding, target).ok());
  }
}

}  // namespace
}  // namespace w5xde
