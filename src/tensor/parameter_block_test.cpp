#include "tensor/parameter_block.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace w5xde {
namespace {

constexpr std::uint64_t kFloatsMax = 1 << 20;

std::shared_ptr<const BlockLayout> original_layout() {
  return BlockLayout::make({{"0.weight", Shape{20, 10}},
                            {"0.bias", Shape{20}},
                            {"2.weight", Shape{10, 20}},
                            {"2.bias", Shape{10}}},
                           kFloatsMax)
      .value();
}

TEST(ParameterBlockTest, every_tensor_starts_on_an_aligned_address) {
  ParameterBlock block(original_layout());
  EXPECT_EQ(block.layout().parameters(), 430u);
  EXPECT_EQ(block.layout().floats(), 208u + 32u + 208u + 16u);
  for (const auto& entry : block.layout().entries()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.values_of(entry).data()) % kAlignment, 0u) << entry.name;
  }
}

TEST(ParameterBlockTest, a_view_sees_what_is_written_to_the_block) {
  ParameterBlock block(original_layout());
  const auto* bias = block.layout().find("0.bias");
  ASSERT_NE(bias, nullptr);
  std::ranges::fill(block.values_of(*bias), 2.0f);
  const TensorView view = block.view(*bias);
  EXPECT_EQ(view.shape(), Shape{20});
  EXPECT_EQ(load<float>(view.bytes().data() + 19 * sizeof(float)), 2.0f);
  EXPECT_EQ(std::ranges::count(block.values(), 2.0f), 20);
  EXPECT_EQ(block.layout().find("1.bias"), nullptr);
}

TEST(ParameterBlockTest, a_new_block_is_zero_padding_included) {
  const ParameterBlock block(original_layout());
  EXPECT_TRUE(std::ranges::all_of(block.values(), [](float value) { return value == 0.0f; }));
}

TEST(ParameterBlockTest, the_fingerprint_follows_names_shapes_and_order) {
  const auto fingerprint = [](std::vector<BlockLayout::Entry> entries) {
    return fingerprint_of(*BlockLayout::make(std::move(entries), kFloatsMax).value());
  };
  const auto original = fingerprint({{"a", Shape{2, 3}}, {"b", Shape{4}}});
  EXPECT_EQ(original, fingerprint({{"a", Shape{2, 3}}, {"b", Shape{4}}}));
  EXPECT_NE(original, fingerprint({{"b", Shape{4}}, {"a", Shape{2, 3}}}));
  EXPECT_NE(original, fingerprint({{"a", Shape{3, 2}}, {"b", Shape{4}}}));
  EXPECT_NE(original, fingerprint({{"a", Shape{2, 3}}, {"c", Shape{4}}}));
  EXPECT_NE(original, fingerprint({{"a", Shape{2, 3}}}));
}

}  // namespace
}  // namespace w5xde
