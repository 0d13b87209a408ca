#include "learn/learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/hash.h"
#include "base/random.h"
#include "w5xde/no_gradient.h"

namespace w5xde {
namespace {

// Three weights, two biases and two buffers; each tensor begins at a multiple of sixteen floats.
constexpr std::size_t kBias = 16, kParameters = 32, kFloats = 48;
constexpr std::size_t kUsed[] = {0, 1, 2, 16, 17, 32, 33};

// A checkpoint in memory.
class Saved final : public BlockSource {
 public:
  explicit Saved(const std::vector<NamedBlock>& blocks) {
    for (const NamedBlock& block : blocks) {
      blocks_.push_back({block.group, std::make_shared<BlockLayout>(*block.layout),
                         std::vector<float>(block.values.begin(), block.values.end())});
    }
  }
  std::shared_ptr<const BlockLayout> layout_of(std::string_view group) const override {
    const auto found = std::ranges::find(blocks_, group, &Block::group);
    return found == blocks_.end() ? nullptr : found->layout;
  }
  Status read(std::string_view group, const BlockLayout&, std::span<float> values) const override {
    const auto found = std::ranges::find(blocks_, group, &Block::group);
    if (found == blocks_.end()) return invalid("no " + std::string(group));
    std::ranges::copy(found->values, values.begin());
    return {};
  }

 private:
  struct Block {
    std::string group;
    std::shared_ptr<const BlockLayout> layout;
    std::vector<float> values;
  };
  std::vector<Block> blocks_;
};

class LearnerTest : public testing::Test {
 protected:
  LearnerTest()
      : parameters_(BlockLayout::make({{"weight", {3}}, {"bias", {2}}}, 100).value()),
        buffers_(BlockLayout::make({{"mean", {2}}}, 100).value()) {}

  Saved first_checkpoint() {
    std::vector<float> state(kFloats);
    for (const std::size_t i : kUsed) state[i] = 1.0f + static_cast<float>(i) / 8;
    const std::span<const float> all = state;
    const std::vector<NamedBlock> blocks = {{"parameters", parameters_.get(), all.first(kParameters)},
                                            {"buffers", buffers_.get(), all.subspan(kParameters)}};
    return Saved(blocks);
  }
  std::unique_ptr<Learner> learner(const Learner::Options& options) {
    return std::move(Learner::from(first_checkpoint(), {}, options, nullptr)).value();
  }
  static std::vector<float> values(const Learner& learner) {
    const auto* begin = reinterpret_cast<const float*>(learner.state()->data());
    return {begin, begin + learner.floats()};
  }
  // A sum of contributions with these floats in the places that are used.
  static AlignedBuffer sum_of(std::uint64_t seed) {
    AlignedBuffer sum(kFloats * sizeof(float));
    std::memset(sum.data(), 0, kFloats * sizeof(float));
    Random random(seed);
    for (const std::size_t i : kUsed) at(sum, i) = static_cast<float>(random.normal());
    return sum;
  }
  static float& at(AlignedBuffer& buffer, std::size_t i) {
    return reinterpret_cast<float*>(buffer.data())[i];
  }
  static Learner::Options sgd(double learning_rate) {
    return {.optimizer = {.learning_rate = learning_rate}};
  }
  static Learner::Options adam() {
    return {.optimizer = {.kind = OptimizerOptions::Kind::adam, .learning_rate = 0.01}};
  }

  std::shared_ptr<const BlockLayout> parameters_, buffers_;
};

TEST_F(LearnerTest, a_step_takes_the_mean_gradient_times_the_learning_rate_off_the_parameters) {
  const auto learner = this->learner(sgd(0.5));
  const auto before = values(*learner);
  AlignedBuffer sum = sum_of(1);
  ASSERT_TRUE(learner->apply(sum, 8, 1));
  const auto after = values(*learner);
  for (const std::size_t i : {0u, 1u, 2u, 16u, 17u}) {
    EXPECT_FLOAT_EQ(after[i], before[i] - 0.5f * (at(sum, i) / 8)) << i;
    EXPECT_NE(after[i], before[i]);
  }
  EXPECT_EQ(learner->version(), 1u);
  EXPECT_EQ(learner->optimizer_steps(), 1u);
}

TEST_F(LearnerTest, buffers_change_by_the_mean_of_their_changes_whatever_the_learning_rate) {
  Learner::Options options = sgd(7);
  options.clip_norm = 1e-3;
  const auto learner = this->learner(options);
  const auto before = values(*learner);
  AlignedBuffer sum = sum_of(1);
  ASSERT_TRUE(learner->apply(sum, 4, 1));
  for (const std::size_t i : {32u, 33u}) {
    EXPECT_FLOAT_EQ(values(*learner)[i], before[i] + at(sum, i) / 4) << i;
  }
}

// 49 × (1 / 49) is a little less than 1 in float.
TEST_F(LearnerTest, a_buffer_that_every_slot_raises_by_one_rises_by_one) {
  for (const std::uint64_t samples : {49u, 41u, 47u, 65u, 1023u, 60'001u}) {
    const auto learner = this->learner(sgd(0.5));
    AlignedBuffer sum = sum_of(1);
    at(sum, 32) = -values(*learner)[32];
    ASSERT_TRUE(learner->apply(sum, 1, 1));
    at(sum, 32) = static_cast<float>(samples);
    ASSERT_TRUE(learner->apply(sum, samples, 1));
    EXPECT_EQ(values(*learner)[32], 1.0F) << samples;
  }
}

TEST_F(LearnerTest, a_parameter_without_a_gradient_is_left_alone_in_one_go_by_parts_and_resumed) {
  const auto whole = learner(adam());
  auto parts = learner(adam());
  const auto begun = values(*whole);
  for (std::uint64_t step = 0; step < 6; ++step) {
    AlignedBuffer sum = sum_of(step);
    if (step % 2 == 0) std::fill_n(&at(sum, kBias), 2, kNoGradient);
    const auto before = values(*whole);
    ASSERT_TRUE(whole->apply(sum, 8, 1));
    EXPECT_EQ(values(*whole)[kBias] == before[kBias], step % 2 == 0);
    const std::span<const float> all(&at(sum, 0), kFloats);
    ASSERT_TRUE(parts->apply_part(all.first(kBias + 1), 8));
    ASSERT_TRUE(parts->apply(sum, 8, 1));
    const Saved saved(parts->blocks());
    const Learner::Counts counts{parts->version(), parts->optimizer_steps(), parts->steps_without_gradient()};
    parts = std::move(Learner::from(saved, counts, adam(), nullptr)).value();
  }
  EXPECT_EQ(values(*whole), values(*parts));
  EXPECT_EQ(parts->steps_without_gradient(), (std::map<std::string, std::uint64_t>{{"bias", 3}}));
}

TEST_F(LearnerTest, a_weight_scales_the_gradient_and_the_buffers_changes) {
  const auto whole = learner(sgd(0.5)), half = learner(sgd(0.5));
  AlignedBuffer sum = sum_of(3);
  ASSERT_TRUE(whole->apply(sum, 4, 0.5));
  ASSERT_TRUE(half->apply(sum, 8, 1));
  EXPECT_EQ(values(*whole), values(*half));
}

TEST_F(LearnerTest, a_gradient_longer_than_the_clip_norm_is_cut_to_it_and_a_shorter_one_is_not) {
  AlignedBuffer sum = sum_of(5);
  double norm = 0;
  for (const std::size_t i : {0u, 1u, 2u, 16u, 17u}) norm += std::pow(double{at(sum, i)} / 8, 2);
  norm = std::sqrt(norm);
  Learner::Options options = sgd(1);
  options.clip_norm = norm / 4;
  const auto clipped = learner(options);
  options.clip_norm = norm * 4;
  const auto loose = learner(options);
  const auto free = learner(sgd(1));
  const auto before = values(*free);
  for (Learner* each : {clipped.get(), loose.get(), free.get()}) ASSERT_TRUE(each->apply(sum, 8, 1));
  EXPECT_EQ(values(*loose), values(*free));
  for (const std::size_t i : {0u, 1u, 2u, 16u, 17u}) {
    EXPECT_NEAR(values(*clipped)[i], before[i] - at(sum, i) / 8 / 4, 1e-5) << i;
  }
}

TEST_F(LearnerTest, the_schedule_s_factor_is_that_of_the_step) {
  Learner::Options options = sgd(1);
  options.schedule = parse_schedule("step:2,0.5", 10).value();
  const auto learner = this->learner(options);
  const AlignedBuffer sum = sum_of(1);
  std::vector<double> rates;
  for (int step = 0; step < 5; ++step) {
    rates.push_back(learner->learning_rate());
    ASSERT_TRUE(learner->apply(sum, 1, 1));
  }
  EXPECT_EQ(rates, (std::vector<double>{1, 1, 0.5, 0.5, 0.25}));
}

TEST_F(LearnerTest, a_version_that_a_frame_still_holds_does_not_change) {
  const auto learner = this->learner(sgd(0.5));
  std::vector<std::pair<Learner::State, std::string>> held;
  for (std::uint64_t version = 0; version < 4; ++version) {
    held.emplace_back(learner->state(), learner->parameters_hash());
    ASSERT_TRUE(learner->apply(sum_of(version), 2, 1));
  }
  for (const auto& [state, hash] : held) {
    EXPECT_EQ(hash128_hex({state->data(), kFloats * sizeof(float)}), hash);
    EXPECT_NE(state, learner->state());
  }
}

TEST_F(LearnerTest, whether_versions_are_held_changes_no_bit) {
  const auto alone = learner(adam()), watched = learner(adam());
  Learner::State last;
  for (std::uint64_t version = 0; version < 6; ++version) {
    if (version % 3 != 2) last = watched->state();
    const AlignedBuffer sum = sum_of(version);
    ASSERT_TRUE(alone->apply(sum, 3, 1) && watched->apply(sum, 3, 1));
    EXPECT_EQ(alone->parameters_hash(), watched->parameters_hash());
  }
}

TEST_F(LearnerTest, a_step_by_parts_is_the_same_bits_and_leaves_the_version_at_hand_alone) {
  auto momentum = sgd(0.5);
  momentum.optimizer.momentum = 0.9;
  for (const Learner::Options& options : {sgd(0.5), momentum, adam()}) {
    for (std::uint64_t cut = 1; cut < kFloats; ++cut) {
      const auto at_once = learner(options), by_parts = learner(options);
      for (std::uint64_t version = 0; version < 3; ++version) {
        const AlignedBuffer sum = sum_of(version);
        const std::string before = by_parts->parameters_hash();
        const std::span<const float> floats(reinterpret_cast<const float*>(sum.data()), kFloats);
        ASSERT_TRUE(at_once->apply(sum, 3, 1));
        ASSERT_TRUE(by_parts->apply_part(floats.first(cut), 3));
        EXPECT_EQ(by_parts->stepped(), cut);
        EXPECT_EQ(by_parts->parameters_hash(), before);
        EXPECT_EQ(by_parts->version(), version);
        ASSERT_TRUE(by_parts->apply(sum, 3, 1));
        EXPECT_EQ(by_parts->stepped(), 0u);
        EXPECT_EQ(by_parts->version(), version + 1);
        EXPECT_EQ(by_parts->parameters_hash(), at_once->parameters_hash());
        EXPECT_EQ(by_parts->optimizer_steps(), at_once->optimizer_steps());
      }
    }
  }
}

TEST_F(LearnerTest, a_checkpoint_of_it_goes_on_with_the_same_bits_optimizer_and_all) {
  const auto learner = this->learner(adam());
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(learner->apply(sum_of(i), 3, 1));
  const Learner::Counts counts{learner->version(), learner->optimizer_steps(), {}};
  const auto again = std::move(Learner::from(Saved(learner->blocks()), counts, adam(), nullptr)).value();
  EXPECT_EQ(again->version(), 3u);
  EXPECT_EQ(again->model_fingerprint(), learner->model_fingerprint());
  EXPECT_EQ(again->parameters_hash(), learner->parameters_hash());
  for (std::uint64_t i = 3; i < 6; ++i) {
    ASSERT_TRUE(learner->apply(sum_of(i), 3, 1) && again->apply(sum_of(i), 3, 1));
    EXPECT_EQ(again->parameters_hash(), learner->parameters_hash()) << i;
  }
}

TEST_F(LearnerTest, a_checkpoint_of_another_optimizer_is_refused) {
  const auto learner = this->learner(sgd(0.1));
  ASSERT_TRUE(learner->apply(sum_of(0), 3, 1));
  const auto refused =
      Learner::from(Saved(learner->blocks()), {.version = 1, .optimizer_steps = 1}, adam(), nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(refused.error().message.starts_with("the checkpoint was made with another optimizer than adam"))
      << refused.error().message;
}

TEST_F(LearnerTest, a_sum_that_is_not_finite_is_refused_and_changes_nothing) {
  for (const double clip_norm : {0.0, 1.0}) {
    for (const std::size_t place : {std::size_t{2}, kBias, kParameters + 1}) {
      for (const float bad :
           {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        for (Learner::Options options : {adam(), sgd(0.5)}) {
          options.clip_norm = clip_norm;
          const auto learner = this->learner(options), other = this->learner(options);
          ASSERT_TRUE(learner->apply(sum_of(0), 3, 1) && other->apply(sum_of(0), 3, 1));
          const std::string hash = learner->parameters_hash();
          AlignedBuffer sum = sum_of(1);
          at(sum, place) = bad;
          EXPECT_FALSE(learner->apply(sum, 3, 1)) << place << " " << bad << " clip " << clip_norm;
          EXPECT_EQ(learner->parameters_hash(), hash);
          EXPECT_EQ(learner->version(), 1u);
          EXPECT_EQ(learner->optimizer_steps(), 1u);
          ASSERT_TRUE(learner->apply(sum_of(2), 3, 1) && other->apply(sum_of(2), 3, 1));
          EXPECT_EQ(learner->parameters_hash(), other->parameters_hash()) << "as if it had not been";
        }
      }
    }
  }
}

TEST_F(LearnerTest, shared_memory_holds_versions_and_contributions_and_changes_no_bit) {
  auto options = adam();
  const auto own = learner(options);
  options.shares_memory = true;
  const auto shared = learner(options);
  for (std::uint64_t version = 0; version < 4; ++version) {
    EXPECT_FALSE(own->state()->shared());
    ASSERT_TRUE(shared->state()->shared());
    ASSERT_TRUE(shared->take_buffer()->shared());
    const AlignedBuffer sum = sum_of(version);
    ASSERT_TRUE(own->apply(sum, 3, 1) && shared->apply(sum, 3, 1));
    EXPECT_EQ(own->parameters_hash(), shared->parameters_hash());
  }
}

TEST_F(LearnerTest, two_versions_take_turns_in_the_same_memory_while_nobody_holds_one) {
  const auto learner = this->learner(sgd(0.5));
  const std::byte* const first = learner->state()->data();
  ASSERT_TRUE(learner->apply(sum_of(0), 3, 1));
  const std::byte* const second = learner->state()->data();
  EXPECT_NE(first, second);
  ASSERT_TRUE(learner->apply(sum_of(1), 3, 1));
  EXPECT_EQ(learner->state()->data(), first);
}

TEST_F(LearnerTest, buffers_that_are_given_back_are_used_again_and_not_hoarded) {
  const auto learner = this->learner(sgd(1));
  Reduction::Buffer buffer = learner->take_buffer();
  const std::byte* memory = buffer->data();
  learner->give_back(std::move(buffer));
  learner->give_back(nullptr);
  EXPECT_EQ(learner->take_buffer()->data(), memory);
  for (int i = 0; i < 100; ++i) learner->give_back(std::make_unique<AlignedBuffer>(kFloats * sizeof(float)));
  EXPECT_LE(learner->spare().size(), 32u);
}

TEST_F(LearnerTest, a_pace_says_where_the_schedule_is_and_scales_the_rate) {
  auto options = sgd(1);
  options.schedule = parse_schedule("step:10,0.5", 0).value();
  const auto learner = this->learner(options);
  EXPECT_EQ(learner->learning_rate(), 1);
  learner->set_pace({.schedule_step = 25, .factor = 4});
  EXPECT_EQ(learner->learning_rate(), 1 * 0.25 * 4);
}

TEST(AllFiniteTest, one_float_that_is_no_number_is_found_wherever_it_is) {
  std::vector<float> values(67, -std::numeric_limits<float>::max());
  values[3] = std::numeric_limits<float>::denorm_min();
  EXPECT_TRUE(all_finite(values));
  EXPECT_TRUE(all_finite({}));
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const float bad :
         {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
      auto spoiled = values;
      spoiled[i] = bad;
      EXPECT_FALSE(all_finite(spoiled)) << i;
    }
  }
}

}  // namespace
}  // namespace w5xde
