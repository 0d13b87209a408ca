#include "codec/gradient.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "codec/gradient_stages.h"

namespace w5xde {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::shared_ptr<const BlockLayout> layout_of(std::vector<BlockLayout::Entry> entries) {
  return BlockLayout::make(std::move(entries), 1u << 24).value();
}

std::vector<float> zeros_for(const BlockLayout& layout) {
  return std::vector<float>(layout.floats());
}

// Noise of very unlike sizes, as gradients are; nothing in the padding.
std::vector<float> gradient_for(const BlockLayout& layout, std::uint64_t seed) {
  auto gradient = zeros_for(layout);
  Random random(seed);
  for (const auto& entry : layout.entries()) {
    for (std::uint64_t i = 0; i < entry.shape.elements(); ++i) {
      gradient[entry.offset + i] = static_cast<float>(random.normal() * std::exp2(8 * random.unit() - 8));
    }
  }
  return gradient;
}

bool all_finite(const std::vector<float>& values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

std::vector<float> decoded(Bytes bytes, const GradientCodec& codec, const BlockLayout& layout) {
  std::vector<float> gradient(layout.floats(), 4711.0f);
  const Status status = decode_gradient(bytes, codec, layout, gradient);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return gradient;
}

TEST(GradientCodec, is_read_back_as_it_was_written) {
  for (const auto* text : {"none", "fp16", "bf16", "int8", "onebit", "topk:0.001", "topk:1", "powersgd:7"}) {
    EXPECT_EQ(to_string(parse_gradient_codec(text).value()), text);
  }
  EXPECT_EQ(to_string(parse_gradient_codec("topk").value()), "topk:0.01");
  EXPECT_EQ(to_string(parse_gradient_codec("powersgd").value()), "powersgd:4");
}

TEST(GradientCodec, that_is_none_is_refused) {
  for (const auto* text : {"", "fp17", "fp16:1", "topk:", "topk:0", "topk:1.1", "topk:x", "topk:nan",
                           "powersgd:0", "powersgd:1.5", "powersgd:1000", "int8:"}) {
    EXPECT_FALSE(parse_gradient_codec(text).ok()) << text;
  }
}

// What every codec promises.
class GradientContract : public testing::TestWithParam<std::string> {
 protected:
  GradientEncoder encoder() const { return {codec_, layout_}; }

  const GradientCodec codec_ = parse_gradient_codec(GetParam()).value();
  const std::shared_ptr<const BlockLayout> layout_ =
      layout_of({{"weight", {70, 31}}, {"bias", {70}}, {"kernel", {8, 3, 5, 5}}, {"scalar", {}}});
};

TEST_P(GradientContract, nothing_comes_to_nothing) {
  const auto nothing = layout_of({});
  GradientEncoder none(codec_, nothing);
  EXPECT_TRUE(decoded(none.encode({}), codec_, *nothing).empty());
  const auto zeros = zeros_for(*layout_);
  auto encoder = this->encoder();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(decoded(encoder.encode(zeros), codec_, *layout_), zeros);
  for (const float left : encoder.feedback()) EXPECT_EQ(left, 0.0f);
}

TEST_P(GradientContract, the_same_gradients_come_to_the_same_bytes) {
  auto one = encoder(), other = encoder();
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto gradient = gradient_for(*layout_, i);
    const Bytes bytes = one.encode(gradient);
    EXPECT_TRUE(std::ranges::equal(bytes, other.encode(gradient)));
  }
  if (!codec_.stateless()) return;
  auto fresh = encoder();
  EXPECT_TRUE(
      std::ranges::equal(one.encode(gradient_for(*layout_, 9)), fresh.encode(gradient_for(*layout_, 9))));
}

TEST_P(GradientContract, padding_stays_zero) {
  auto encoder = this->encoder();
  const auto gradient = decoded(encoder.encode(gradient_for(*layout_, 1)), codec_, *layout_);
  std::vector<bool> inside(gradient.size());
  for (const auto& entry : layout_->entries()) {
    for (std::uint64_t i = 0; i < entry.shape.elements(); ++i) inside[entry.offset + i] = true;
  }
  for (std::size_t i = 0; i < gradient.size(); ++i) EXPECT_TRUE(inside[i] || gradient[i] == 0.0f) << i;
}

TEST_P(GradientContract, what_is_no_number_is_heard_of_and_forgotten) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    auto encoder = this->encoder(), honest = this->encoder();
    (void)encoder.encode(gradient_for(*layout_, 1));
    (void)honest.encode(gradient_for(*layout_, 1));
    auto gradient = gradient_for(*layout_, 2);
    gradient[1500] = bad;
    EXPECT_FALSE(all_finite(decoded(encoder.encode(gradient), codec_, *layout_))) << bad;
    EXPECT_TRUE(std::ranges::equal(encoder.feedback(), honest.feedback()));
    EXPECT_TRUE(all_finite(decoded(encoder.encode(gradient_for(*layout_, 3)), codec_, *layout_)));
  }
}

TEST_P(GradientContract, huge_and_tiny_numbers_stay_finite) {
  for (const float size : {3e38f, 1e30f, 1e-30f, 1e-38f, 1e-44f}) {
    auto gradient = gradient_for(*layout_, 5);
    for (float& value : gradient) value = value == 0 ? 0 : std::copysign(size, value);
    auto encoder = this->encoder();
    if (codec_.kind == GradientKind::powersgd && size > 1e20f) continue;  // a product of two overflows
    EXPECT_TRUE(all_finite(decoded(encoder.encode(gradient), codec_, *layout_))) << size;
  }
}

TEST_P(GradientContract, over_time_everything_arrives) {
  auto encoder = this->encoder();
  std::vector<double> given(layout_->floats()), arrived(layout_->floats());
  for (std::uint64_t step = 0; step < 50; ++step) {
    const auto gradient = gradient_for(*layout_, step);
    const auto got = decoded(encoder.encode(gradient), codec_, *layout_);
    for (std::size_t i = 0; i < given.size(); ++i) {
      given[i] += double{gradient[i]};
      arrived[i] += double{got[i]};
    }
  }
  const auto residual = encoder.feedback();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const double left = residual.empty() ? 0 : double{residual[i]};
    const double tolerance =
        residual.empty() ? 0.3 : 1e-4;  // without feedback, what fifty roundings may lose
    ASSERT_NEAR(arrived[i] + left, given[i], tolerance) << i;
  }
}

TEST_P(GradientContract, a_restored_residual_goes_on_where_it_was) {
  if (codec_.stateless() || codec_.kind == GradientKind::powersgd) return;  // its directions begin anew
  auto one = encoder();
  for (std::uint64_t i = 0; i < 3; ++i) (void)one.encode(gradient_for(*layout_, i));
  auto other = encoder();
  other.add_feedback(one.feedback());
  const auto gradient = gradient_for(*layout_, 7);
  const Bytes bytes = one.encode(gradient);
  EXPECT_TRUE(std::ranges::equal(bytes, other.encode(gradient)));
}

TEST_P(GradientContract, bytes_that_are_cut_or_continued_are_refused) {
  auto encoder = this->encoder();
  const Bytes bytes = encoder.encode(gradient_for(*layout_, 1));
  std::vector<float> gradient(layout_->floats());
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 97) {
    EXPECT_FALSE(decode_gradient(bytes.first(size), codec_, *layout_, gradient).ok()) << size;
  }
  std::vector<std::byte> longer(bytes.begin(), bytes.end());
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_gradient(longer, codec_, *layout_, gradient).ok());
}

INSTANTIATE_TEST_SUITE_P(Codecs, GradientContract,
                         testing::Values("none", "fp16", "bf16", "int8", "onebit", "topk:0.05", "topk:1",
                                         "powersgd:1", "powersgd:4"),
                         [](const auto& codec) {
                           std::string name = codec.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == ':' || c == '.'; }, '_');
                           return name;
                         });

RC_GTEST_PROP(HostileGradient, any_bytes_are_refused_or_fill_the_gradient, ()) {
  const auto layout = layout_of({{"weight", {9, 7}}, {"bias", {9}}});
  const auto codec = parse_gradient_codec(*rc::gen::elementOf(std::vector<std::string>{
                                              "fp16", "bf16", "int8", "onebit", "topk", "powersgd:2"}))
                         .value();
  const auto bytes = *rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>());
  std::vector<float> gradient(layout->floats());
  (void)decode_gradient(std::as_bytes(std::span(bytes)), codec, *layout, gradient);
}

// One gradient, without what was left of others: the bounds that the header states.
class GradientBounds : public testing::Test {
 protected:
  std::vector<float> there_and_back(const std::string& name) const {
    const auto codec = parse_gradient_codec(name).value();
    GradientEncoder encoder(codec, layout_);
    return decoded(encoder.encode(gradient_), codec, *layout_);
  }
  float largest_around(std::size_t at) const {
    const std::size_t first = at / gradient::kChunk * gradient::kChunk;
    float largest = 0;
    for (std::size_t i = first; i < std::min(gradient_.size(), first + gradient::kChunk); ++i)
      largest = std::max(largest, std::abs(gradient_[i]));
    return largest;
  }

  const std::shared_ptr<const BlockLayout> layout_ = layout_of({{"weight", {300, 400}}});
  const std::vector<float> gradient_ = gradient_for(*layout_, 3);
};

TEST_F(GradientBounds, fp16_loses_a_2048th_of_each_value_at_most) {
  const auto got = there_and_back("fp16");
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double bound = std::max(0x1p-11 * std::abs(gradient_[i]), 0x1p-25 * largest_around(i));
    ASSERT_LE(std::abs(got[i] - gradient_[i]), bound) << i;
  }
}

TEST_F(GradientBounds, bf16_loses_a_256th_of_each_value_at_most) {
  const auto got = there_and_back("bf16");
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - gradient_[i]), 0x1p-8 * std::abs(gradient_[i])) << i;
}

TEST_F(GradientBounds, int8_loses_a_254th_of_the_chunk_s_largest_at_most) {
  const auto got = there_and_back("int8");
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::abs(got[i] - gradient_[i]), largest_around(i) / 254 * 1.00001f) << i;
}

TEST_F(GradientBounds, onebit_keeps_the_sum_of_each_chunk) {
  const auto got = there_and_back("onebit");
  for (std::size_t first = 0; first < got.size(); first += gradient::kChunk) {
    double given = 0, arrived = 0;
    for (std::size_t i = first; i < std::min(got.size(), first + gradient::kChunk); ++i) {
      given += double{gradient_[i]};
      arrived += double{got[i]};
      ASSERT_EQ(got[i] > 0, gradient_[i] > 0);
    }
    EXPECT_NEAR(arrived, given, 1e-4);
  }
}

TEST_F(GradientBounds, topk_says_the_largest_exactly_and_nothing_else) {
  const auto got = there_and_back("topk:0.01");
  float least_said = kInfinity, largest_unsaid = 0;
  std::size_t said = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == 0) {
      largest_unsaid = std::max(largest_unsaid, std::abs(gradient_[i]));
    } else {
      ASSERT_EQ(got[i], gradient_[i]);
      least_said = std::min(least_said, std::abs(got[i]));
      ++said;
    }
  }
  EXPECT_EQ(said, 1200u);
  EXPECT_GE(least_said, largest_unsaid);
}

TEST_F(GradientBounds, powersgd_keeps_a_matrix_of_its_rank) {
  auto gradient = zeros_for(*layout_);
  Random random(1);
  std::vector<double> left(600), right(800);
  for (double& value : left) value = random.normal();
  for (double& value : right) value = random.normal();
  double square = 0;
  for (std::size_t i = 0; i < 300; ++i) {
    for (std::size_t j = 0; j < 400; ++j) {
      const double value = left[i] * right[j] + left[300 + i] * right[400 + j];
      gradient[i * 400 + j] = static_cast<float>(value);
      square += value * value;
    }
  }
  const auto codec = parse_gradient_codec("powersgd:2").value();
  GradientEncoder encoder(codec, layout_);
  const auto got = decoded(encoder.encode(gradient), codec, *layout_);
  double error = 0;
  for (std::size_t i = 0; i < got.size(); ++i) error += std::pow(double{got[i]} - double{gradient[i]}, 2);
  EXPECT_LT(std::sqrt(error / square), 1e-5);
}

TEST_F(GradientBounds, sizes_are_what_the_header_says) {
  const auto bytes_of = [&](const std::string& name) {
    GradientEncoder encoder(parse_gradient_codec(name).value(), layout_);
    return static_cast<double>(encoder.encode(gradient_).size());
  };
  const double exact = bytes_of("none");
  EXPECT_NEAR(exact / bytes_of("fp16"), 2, 0.01);
  EXPECT_NEAR(exact / bytes_of("bf16"), 2, 0.01);
  EXPECT_NEAR(exact / bytes_of("int8"), 4, 0.02);
  EXPECT_GT(exact / bytes_of("onebit"), 29);
  EXPECT_GT(exact / bytes_of("topk:0.001"), 600);
  EXPECT_NEAR(exact / bytes_of("powersgd:4"), 120000.0 / (4 * 700), 0.1);
}

TEST(TopK, of_equal_magnitudes_the_first_are_said) {
  const auto layout = layout_of({{"weight", {64}}});
  std::vector<float> gradient(64, 1.0f);
  gradient[40] = -2;
  const auto codec = parse_gradient_codec("topk:0.05").value();  // four of them
  GradientEncoder encoder(codec, layout);
  const auto got = decoded(encoder.encode(gradient), codec, *layout);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], i < 3 ? 1.0f : i == 40 ? -2.0f : 0.0f) << i;
}

// Deep Gradient Compression: what is held back arrives with the momentum that it would have gathered.
TEST(TopK, with_momentum_a_constant_gradient_arrives_as_the_optimizer_would_have_summed_it) {
  const auto layout = layout_of({{"weight", {16}}});
  const auto codec = parse_gradient_codec("topk:0.0625").value();  // one a step
  GradientEncoder encoder(codec, layout, 0.5f);
  auto gradient = std::vector<float>(16);
  gradient[3] = 1;
  gradient[5] = 0.9f;  // held back at first
  EXPECT_EQ(decoded(encoder.encode(gradient), codec, *layout)[3], 1.0f);
  // 0.9 + (0.5 × 0.9 + 0.9) = 2.25 beats 1.
  const auto second = decoded(encoder.encode(gradient), codec, *layout);
  EXPECT_FLOAT_EQ(second[5], 2.25f);
  EXPECT_EQ(second[3], 0.0f);
}

}  // namespace
}  // namespace w5xde
