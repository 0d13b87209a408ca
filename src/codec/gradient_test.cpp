#include "codec/gradient.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "codec/gradient_stages.h"
#include "contract/gradient_contract.h"

namespace w5xde {
namespace {

using namespace contract;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

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

INSTANTIATE_TEST_SUITE_P(Codecs, GradientContract,
                         testing::Values(GradientCoding{"none"}, GradientCoding{"fp16"},
                                         GradientCoding{"bf16"}, GradientCoding{"int8"},
                                         GradientCoding{"onebit"}, GradientCoding{"topk:0.05"},
                                         GradientCoding{"topk:0.05", 0.9f}, GradientCoding{"topk:1"},
                                         GradientCoding{"powersgd:1"}, GradientCoding{"powersgd:4"}),
                         name_of_gradient_coding);

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
    const std::size_t first = at / kGradientChunk * kGradientChunk;
    float largest = 0;
    for (std::size_t i = first; i < std::min(gradient_.size(), first + kGradientChunk); ++i)
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

TEST_F(GradientBounds, chunks_side_by_side_are_the_block) {
  for (const char* name : {"none", "fp16", "bf16", "int8"}) {
    const auto codec = parse_gradient_codec(name).value();
    ASSERT_TRUE(codec.by_chunks()) << name;
    GradientEncoder encoder(codec, layout_);
    const Bytes whole = encoder.encode(gradient_);
    std::vector<std::byte> parts;
    std::vector<float> got;
    constexpr std::size_t kPart = 5 * kGradientChunk;
    for (std::size_t first = 0; first < gradient_.size(); first += kPart) {
      const auto floats = std::span(gradient_).subspan(first, std::min(kPart, gradient_.size() - first));
      std::vector<std::byte> part(chunked_bytes(codec, floats.size()));
      encode_chunks(floats, codec, part);
      parts.insert(parts.end(), part.begin(), part.end());
      std::vector<float> back(floats.size());
      ASSERT_TRUE(decode_chunks(part, codec, back).ok());
      got.insert(got.end(), back.begin(), back.end());
      part.pop_back();
      EXPECT_FALSE(decode_chunks(part, codec, back).ok());
    }
    EXPECT_TRUE(std::ranges::equal(parts, whole)) << name;
    EXPECT_EQ(got, there_and_back(name)) << name;
  }
  for (const char* name : {"onebit", "topk", "powersgd"})
    EXPECT_FALSE(parse_gradient_codec(name)->by_chunks()) << name;
}

TEST_F(GradientBounds, of_a_gradient_that_is_encoded_by_itself_nothing_is_held_back) {
  for (const char* name : {"none", "fp16", "int8", "onebit", "topk:0.01"}) {
    const auto codec = parse_gradient_codec(name).value();
    GradientEncoder first(codec, layout_), used(codec, layout_);
    const Bytes expected = first.encode(gradient_);
    std::vector<std::byte> out(encoded_bytes_max(codec, *layout_));
    (void)used.encode_fresh_into(out, gradient_for(*layout_, 4));
    EXPECT_TRUE(std::ranges::equal(used.encode_fresh_into(out, gradient_), expected)) << name;
  }
  // powersgd begins with the directions that it found last.
  const auto codec = parse_gradient_codec("powersgd:2").value();
  GradientEncoder used(codec, layout_);
  std::vector<std::byte> out(encoded_bytes_max(codec, *layout_));
  (void)used.encode_fresh_into(out, gradient_);
  EXPECT_TRUE(std::ranges::all_of(used.feedback(), [](float value) { return value == 0; }));
}

TEST_F(GradientBounds, onebit_keeps_the_sum_of_each_chunk) {
  const auto got = there_and_back("onebit");
  for (std::size_t first = 0; first < got.size(); first += kGradientChunk) {
    double given = 0, arrived = 0;
    for (std::size_t i = first; i < std::min(got.size(), first + kGradientChunk); ++i) {
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

TEST_F(GradientBounds, sizes_are_about_what_they_usually_are) {
  for (const auto* name :
       {"none", "fp16", "int8", "onebit", "topk:0.001", "topk:0.01", "topk:0.3", "powersgd:4"}) {
    const auto codec = parse_gradient_codec(name).value();
    GradientEncoder encoder(codec, layout_);
    const auto bytes = static_cast<double>(encoder.encode(gradient_).size());
    EXPECT_NEAR(static_cast<double>(encoded_bytes_usual(codec, *layout_)), bytes, 0.02 * bytes) << name;
    EXPECT_LE(encoded_bytes_usual(codec, *layout_), encoded_bytes_max(codec, *layout_)) << name;
  }
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

TEST(TopK, finds_what_sorting_finds) {
  // Longer than a sample needs, with many that are equal, and large ones where no sample looks.
  const std::size_t floats = 1u << 16;
  gradient::TopK top;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    std::vector<float> values(floats);
    for (float& value : values)
      value = static_cast<float>(std::floor(random.normal() * (seed < 3 ? 1e6 : 4)));
    if (seed % 3 == 1)
      for (std::size_t i = 100; i < floats; i += 1024)
        std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(i), 64, 1e9f);
    if (seed % 3 == 2) std::fill(values.begin() + 7, values.end(), 0.0f);
    std::vector<std::uint32_t> sorted(floats);
    std::iota(sorted.begin(), sorted.end(), 0u);
    std::ranges::stable_sort(sorted, std::greater<>(), [&](std::uint32_t i) { return std::abs(values[i]); });
    for (const std::size_t count : {0u, 1u, 3u, 650u, 5000u, 65535u, 65536u}) {
      const auto found = top.find(values, count);
      ASSERT_LE(found.size(), count);
      std::vector<std::uint32_t> expected(sorted.begin(),
                                          sorted.begin() + static_cast<std::ptrdiff_t>(found.size()));
      std::ranges::sort(expected);
      EXPECT_TRUE(std::ranges::equal(found, expected)) << "seed " << seed << ", " << count;
      if (found.size() == count) continue;
      const float left_out = std::abs(values[sorted[found.size()]]), largest = std::abs(values[sorted[0]]);
      EXPECT_LT(left_out, largest / 65536) << "seed " << seed << ", " << count;
    }
  }
}

TEST(TopK, zeros_and_what_rounding_left_are_not_said_for_want_of_others) {
  std::vector<float> values(4096);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 3 == 0 ? 1e-9f : 0;
  values[17] = 0.5f;
  values[4000] = -0.001f;
  gradient::TopK top;
  const auto found = top.find(values, 100);
  EXPECT_EQ(std::vector(found.begin(), found.end()), (std::vector<std::uint32_t>{17, 4000}));
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

// Feedback of an encoder with velocity, taken over by one that has none, and the other way round.
TEST(TopK, velocity_is_for_topk_with_momentum_only) {
  const auto layout = layout_of({{"weight", {256}}});
  const auto codec = parse_gradient_codec("topk:0.05").value();
  GradientEncoder gathers(codec, layout, 0.9f), plain(codec, layout);
  (void)gathers.encode(gradient_for(*layout, 1));
  EXPECT_EQ(gathers.feedback().size(), 512u);
  plain.add_feedback(gathers.feedback());
  EXPECT_TRUE(std::ranges::equal(plain.feedback(), gathers.feedback().first(256)));
  GradientEncoder late(codec, layout, 0.9f);
  late.add_feedback(plain.feedback());
  EXPECT_TRUE(std::ranges::equal(late.feedback().first(256), plain.feedback()));
  for (const float velocity : late.feedback().last(256)) EXPECT_EQ(velocity, 0.0f);

  gathers.set_codec(parse_gradient_codec("topk:0.1").value());
  EXPECT_EQ(gathers.feedback().size(), 512u);
  gathers.set_codec(parse_gradient_codec("int8").value());
  EXPECT_EQ(gathers.feedback().size(), 256u);
}

TEST(GradientEncoder, keeps_what_it_is_given_even_while_it_says_none_of_it) {
  const auto layout = layout_of({{"weight", {256}}});
  GradientEncoder encoder(parse_gradient_codec("bf16").value(), layout);
  EXPECT_TRUE(encoder.feedback().empty());
  encoder.add_feedback({});
  EXPECT_TRUE(encoder.feedback().empty());
  encoder.add_feedback(gradient_for(*layout, 1));
  EXPECT_TRUE(std::ranges::equal(encoder.feedback(), gradient_for(*layout, 1)));
}

// Every machine and every build says the same, with wide vectors or without.
TEST(GradientEncoder, says_the_same_bytes_on_every_machine) {
  const auto layout = layout_of({{"weight", {70, 131}}, {"bias", {1031}}});
  std::string hashes;
  for (const auto* name : {"fp16", "bf16", "int8", "onebit", "topk:0.01", "powersgd:5"}) {
    GradientEncoder encoder(parse_gradient_codec(name).value(), layout, 0.9f);
    std::vector<std::byte> all;
    for (std::uint64_t step = 0; step < 4; ++step)
      std::ranges::copy(encoder.encode(gradient_for(*layout, step)), std::back_inserter(all));
    hashes += fmt::format("{} {:016x}\n", name, hash64(all));
  }
  EXPECT_EQ(hashes,
            "fp16 0bd02df5cd098766\n"
            "bf16 18b79126a8c8431c\n"
            "int8 e544180b5cfd7be4\n"
            "onebit e085677ac0b45ac9\n"
            "topk:0.01 3b7793b67b1d1efe\n"
            "powersgd:5 ea61fc549644c8a1\n");
}

TEST(GradientEncoder, gathers_momentum_once_a_step_however_a_step_is_cut) {
  const auto layout = BlockLayout::make({{"w", Shape{64}}}, 1 << 20).value();
  const GradientCodec codec{.kind = GradientKind::topk, .density = 1.0 / 64};
  GradientEncoder whole(codec, layout, 0.5F), halves(codec, layout, 0.5F);
  std::vector<float> gradient(64), half(64);
  for (std::size_t i = 0; i < 64; ++i) gradient[i] = static_cast<float>(i), half[i] = gradient[i] / 2;
  std::vector<float> delivered(64), delivered_by_halves(64), decoded(64);
  const auto deliver = [&](Bytes encoded, std::vector<float>& to) {
    ASSERT_TRUE(decode_gradient(encoded, codec, *layout, decoded).ok());
    for (std::size_t i = 0; i < 64; ++i) to[i] += decoded[i];
  };
  for (int step = 0; step < 3; ++step) {
    deliver(whole.encode(gradient), delivered);
    deliver(halves.encode(half), delivered_by_halves);
    deliver(halves.encode(half, true), delivered_by_halves);
  }
  // Float 3 is never among the largest, so that all of it is still to be said: 3 + (1.5 + 3) + (2.25 + 3).
  EXPECT_FLOAT_EQ(whole.feedback()[3], 12.75F);
  EXPECT_FLOAT_EQ(halves.feedback()[3], 12.75F);
}

class TakeBack : public testing::TestWithParam<const char*> {
 protected:
  const std::shared_ptr<const BlockLayout> layout_ = layout_of({{"weight", {30, 40}}, {"bias", {30}}});
};

TEST_P(TakeBack, makes_feedback_what_it_was_before) {
  GradientEncoder encoder(parse_gradient_codec(GetParam()).value(), layout_, 0.9F);
  (void)encoder.encode(gradient_for(*layout_, 1));
  const std::vector<float> before(encoder.feedback().begin(), encoder.feedback().end());
  (void)encoder.encode(gradient_for(*layout_, 2));
  ASSERT_FALSE(std::ranges::equal(encoder.feedback(), before));
  encoder.take_back();
  EXPECT_TRUE(std::ranges::equal(encoder.feedback(), before));
  encoder.take_back();
  EXPECT_TRUE(std::ranges::equal(encoder.feedback(), before)) << "once";
}

TEST_P(TakeBack, leaves_what_was_added_since) {
  GradientEncoder encoder(parse_gradient_codec(GetParam()).value(), layout_);
  (void)encoder.encode(gradient_for(*layout_, 1));
  const std::vector<float> added(layout_->floats(), 0.25F);
  (void)encoder.encode(gradient_for(*layout_, 2));
  GradientEncoder other(parse_gradient_codec(GetParam()).value(), layout_);
  (void)other.encode(gradient_for(*layout_, 1));
  encoder.add_feedback(added);
  encoder.take_back();
  other.add_feedback(added);
  EXPECT_TRUE(std::ranges::equal(encoder.feedback(), other.feedback()));
}

TEST_P(TakeBack, of_one_before_the_last_says_its_gradient_never) {
  // All that is said, and what is still to be said, add up to the gradients that count: the first and third.
  GradientEncoder encoder(parse_gradient_codec(GetParam()).value(), layout_);
  std::vector<float> expected(layout_->floats()), said(layout_->floats());
  std::vector<float> change;
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const std::vector<float> gradient = gradient_for(*layout_, seed);
    if (seed == 3) change = encoder.last_change();
    std::vector<float> decoded(layout_->floats());
    const GradientCodec codec = parse_gradient_codec(GetParam()).value();
    ASSERT_TRUE(decode_gradient(encoder.encode(gradient), codec, *layout_, decoded).ok());
    for (std::size_t i = 0; seed != 2 && i < said.size(); ++i) {
      expected[i] += gradient[i];
      said[i] += decoded[i];
    }
  }
  encoder.add_feedback(change);
  for (std::size_t i = 0; i < said.size(); ++i)
    EXPECT_NEAR(said[i] + encoder.feedback()[i], expected[i], 1e-4) << i;
}

INSTANTIATE_TEST_SUITE_P(Gradient, TakeBack, testing::Values("int8", "onebit", "topk:0.1", "powersgd:1"));

}  // namespace
}  // namespace w5xde
