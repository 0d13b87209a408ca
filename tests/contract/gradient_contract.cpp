#include "contract/gradient_contract.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "contract/lossless_contract.h"

namespace w5xde::contract {

std::string name_of_gradient_coding(const testing::TestParamInfo<GradientCoding>& info) {
  std::string name = info.param.codec + (info.param.momentum > 0 ? "_with_momentum" : "");
  std::ranges::replace_if(
      name, [](char c) { return c == ':' || c == '.'; }, '_');
  return name;
}

std::shared_ptr<const BlockLayout> layout_of(std::vector<BlockLayout::Entry> entries) {
  return BlockLayout::make(std::move(entries), 1u << 24).value();
}

std::vector<float> zeros_for(const BlockLayout& layout) {
  return std::vector<float>(layout.floats());
}

std::vector<float> gradient_for(const BlockLayout& layout, std::uint64_t seed) {
  auto gradient = zeros_for(layout);
  Random random(seed);
  for (const auto& entry : layout.entries()) {
    for (std::uint64_t i = 0; i < entry.shape.elements(); ++i) {
      const int exponent = -static_cast<int>(random.below(8));
      gradient[entry.offset + i] = static_cast<float>(std::ldexp(random.normal(), exponent));
    }
  }
  return gradient;
}

std::vector<float> decoded(Bytes bytes, const GradientCodec& codec, const BlockLayout& layout) {
  std::vector<float> gradient(layout.floats(), 4711.0f);
  const Status status = decode_gradient(bytes, codec, layout, gradient);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  return gradient;
}

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();

bool all_finite(std::span<const float> values) {
  return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

void expect_zero_padding(const std::vector<float>& block, const BlockLayout& layout) {
  auto cleared = block;
  layout.clear_padding(cleared);
  for (std::size_t i = 0; i < block.size(); ++i)
    EXPECT_TRUE(block[i] == cleared[i] || (std::isnan(block[i]) && std::isnan(cleared[i]))) << i;
}

// A gradient of one size, with the signs of another.
std::vector<float> gradient_of_size(const BlockLayout& layout, float size) {
  auto gradient = gradient_for(layout, 5);
  for (float& value : gradient) value = value == 0 ? 0 : std::copysign(size, value);
  return gradient;
}

// What was given and what arrived, to be equal but for what is still to be said.
class Balance {
 public:
  explicit Balance(std::size_t floats) : open_(floats) {}
  void give(std::span<const float> gradient) { add(gradient, 1); }
  void receive(std::span<const float> gradient) { add(gradient, -1); }
  void expect_settled_by(std::span<const float> residual, double tolerance) const {
    for (std::size_t i = 0; i < open_.size(); ++i)
      ASSERT_NEAR(open_[i], residual.empty() ? 0.0 : double{residual[i]}, tolerance) << i;
  }

 private:
  void add(std::span<const float> gradient, double sign) {
    for (std::size_t i = 0; i < open_.size(); ++i) open_[i] += sign * double{gradient[i]};
  }

  std::vector<double> open_;
};

TEST_P(GradientContract, nothing_comes_to_nothing) {
  const auto nothing = layout_of({});
  GradientEncoder none(codec_, nothing, GetParam().momentum);
  EXPECT_TRUE(decoded(none.encode({}), codec_, *nothing).empty());
  const auto zeros = zeros_for(*layout_);
  auto encoder = this->encoder();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(there_and_back(encoder, zeros), zeros);
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

TEST_P(GradientContract, no_encoding_is_longer_than_was_said) {
  const std::uint64_t bytes_max = encoded_bytes_max(codec_, *layout_);
  auto encoder = this->encoder();
  for (const auto& gradient : {gradient_for(*layout_, 1), zeros_for(*layout_), gradient_of_size(*layout_, 1),
                               gradient_of_size(*layout_, kNan)}) {
    WalledBytes out(bytes_max);
    const Bytes bytes = encoder.encode_into(out.bytes(), gradient);
    EXPECT_TRUE(out.walls_stand());
    EXPECT_EQ(bytes.data(), out.bytes().data());
    EXPECT_LE(bytes.size(), bytes_max);
  }
}

TEST_P(GradientContract, padding_stays_zero) {
  auto encoder = this->encoder();
  for (std::uint64_t i = 0; i < 3; ++i)
    expect_zero_padding(there_and_back(encoder, gradient_for(*layout_, i)), *layout_);
  auto bad = gradient_for(*layout_, 1);
  bad[0] = kNan;
  expect_zero_padding(there_and_back(encoder, bad), *layout_);
}

TEST_P(GradientContract, what_is_no_number_is_heard_of_and_forgotten) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    auto encoder = this->encoder(), honest = this->encoder();
    (void)encoder.encode(gradient_for(*layout_, 1));
    (void)honest.encode(gradient_for(*layout_, 1));
    auto gradient = gradient_for(*layout_, 2);
    gradient[1500] = bad;
    EXPECT_FALSE(all_finite(there_and_back(encoder, gradient))) << bad;
    EXPECT_TRUE(std::ranges::equal(encoder.feedback(), honest.feedback()));
    const auto next = gradient_for(*layout_, 3);
    const auto got = there_and_back(encoder, next);
    EXPECT_TRUE(all_finite(got));
    EXPECT_EQ(got, there_and_back(honest, next));
  }
}

TEST_P(GradientContract, huge_and_tiny_numbers_stay_finite) {
  for (const float size : {kLargest, 3e38f, 1e30f, 1e-30f, 1e-38f, 1e-44f}) {
    auto encoder = this->encoder();
    const auto got = there_and_back(encoder, gradient_of_size(*layout_, size));
    const bool may_overflow = codec_.kind == GradientKind::powersgd && size > 1e18f;  // in a product of two
    EXPECT_TRUE(may_overflow || all_finite(got)) << size;
    EXPECT_TRUE(all_finite(encoder.feedback())) << size;
  }
}

// Finite numbers may add up to one that is not; it must not stay for ever.
TEST_P(GradientContract, a_sum_that_is_no_number_does_not_stay) {
  auto encoder = this->encoder();
  const auto huge = gradient_of_size(*layout_, 3e38f);
  for (int i = 0; i < 5; ++i) {
    (void)encoder.encode(huge);
    EXPECT_TRUE(all_finite(encoder.feedback())) << i;
  }
}

TEST_P(GradientContract, over_time_everything_arrives) {
  if (GetParam().momentum > 0) return;  // more arrives than was given, by what it gathers
  auto encoder = this->encoder();
  Balance balance(layout_->floats());
  for (std::uint64_t step = 0; step < 50; ++step) {
    const auto gradient = gradient_for(*layout_, step);
    balance.give(gradient);
    balance.receive(there_and_back(encoder, gradient));
  }
  // Without feedback, what fifty roundings may lose.
  balance.expect_settled_by(encoder.feedback(), codec_.stateless() ? 0.3 : 1e-4);
}

TEST_P(GradientContract, feedback_added_to_a_fresh_encoder_goes_on_where_it_was) {
  if (codec_.kind == GradientKind::powersgd) return;  // its directions begin anew
  auto one = encoder();
  for (std::uint64_t i = 0; i < 3; ++i) (void)one.encode(gradient_for(*layout_, i));
  auto other = encoder();
  other.add_feedback(one.feedback());
  const auto gradient = gradient_for(*layout_, 7);
  const Bytes bytes = one.encode(gradient);
  EXPECT_TRUE(std::ranges::equal(bytes, other.encode(gradient)));
}

TEST_P(GradientContract, a_node_that_takes_over_another_s_feedback_loses_nothing) {
  if (GetParam().momentum > 0 || codec_.stateless()) return;
  auto leaving = encoder(), staying = encoder();
  Balance balance(layout_->floats());
  const auto step = [&](GradientEncoder& encoder, std::uint64_t seed) {
    const auto gradient = gradient_for(*layout_, seed);
    balance.give(gradient);
    balance.receive(there_and_back(encoder, gradient));
  };
  for (std::uint64_t i = 0; i < 5; ++i) {
    step(leaving, i);
    step(staying, 100 + i);
  }
  staying.add_feedback(leaving.feedback());
  balance.expect_settled_by(staying.feedback(), 1e-4);
  for (std::uint64_t i = 0; i < 5; ++i) step(staying, 200 + i);
  balance.expect_settled_by(staying.feedback(), 1e-4);
}

TEST_P(GradientContract, feedback_that_is_no_number_is_left_out) {
  auto encoder = this->encoder();
  auto feedback = gradient_for(*layout_, 1);
  encoder.add_feedback(feedback);
  std::ranges::fill(feedback, kNan);
  encoder.add_feedback(feedback);
  EXPECT_TRUE(std::ranges::equal(encoder.feedback().first(feedback.size()), gradient_for(*layout_, 1)));
}

TEST_P(GradientContract, another_codec_says_what_this_one_left) {
  auto encoder = this->encoder();
  (void)encoder.encode(gradient_for(*layout_, 1));
  const std::vector<float> feedback(encoder.feedback().begin(), encoder.feedback().end());
  // A stateless codec is a function of the gradient alone, and what is kept waits.
  const auto half = parse_gradient_codec("fp16").value();
  encoder.set_codec(half);
  GradientEncoder fresh(half, layout_);
  const auto gradient = gradient_for(*layout_, 2);
  EXPECT_TRUE(std::ranges::equal(encoder.encode(gradient), fresh.encode(gradient)));
  const std::size_t residual_floats = std::min<std::size_t>(feedback.size(), layout_->floats());
  EXPECT_TRUE(std::ranges::equal(encoder.feedback(), std::span(feedback).first(residual_floats)));
  // All of it at once.
  const auto all = parse_gradient_codec("topk:1").value();
  encoder.set_codec(all);
  const auto got = decoded(encoder.encode(zeros_for(*layout_)), all, *layout_);
  if (feedback.empty()) {
    EXPECT_EQ(got, zeros_for(*layout_));
  } else {
    EXPECT_TRUE(std::ranges::equal(got, std::span(feedback).first(residual_floats)));
  }
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

// Whatever they say, they say nothing about the padding, and nothing beyond the block.
TEST_P(GradientContract, damaged_bytes_are_refused_or_fill_the_gradient) {
  auto encoder = this->encoder();
  const Bytes bytes = encoder.encode(gradient_for(*layout_, 1));
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> damaged(bytes.begin(), bytes.end());
    for (int i = 0; i < 8; ++i)
      damaged[random.below(round % 2 == 0 ? damaged.size() : 64)] = static_cast<std::byte>(random.next());
    WalledBytes memory(layout_->floats() * sizeof(float));
    const std::span gradient(reinterpret_cast<float*>(memory.bytes().data()), layout_->floats());
    const Status status = decode_gradient(damaged, codec_, *layout_, gradient);
    EXPECT_TRUE(memory.walls_stand()) << "round " << round;
    if (status.ok()) expect_zero_padding({gradient.begin(), gradient.end()}, *layout_);
  }
}

}  // namespace

}  // namespace w5xde::contract
