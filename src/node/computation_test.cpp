#include "node/computation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstring>

#include "learn/seeds.h"
#include "support/fake_engine.h"
#include "support/sampled_lease.h"

namespace w5xde {
namespace {

class ComputationTest : public testing::Test {
 protected:
  ComputationTest() : state_(engine_.description().floats()) {
    EXPECT_TRUE(engine_.initialise(7, state_).ok());
    for (std::size_t i = engine_.description().parameters->floats(); i < state_.size(); ++i) state_[i] = 0.5f;
  }

  Computed run(SlotBlock block, Work work = Work::train) {
    const auto made = sampled_lease(3, block, work);
    return std::move(computation_.run(made.lease, made.payload, state_)).value();
  }
  Bytes bytes_of_values(const Computed& computed) const {
    return {computed.values->data(), state_.size() * sizeof(float)};
  }

  FakeEngine engine_;
  std::vector<float> state_;
  Computation computation_{engine_};
};

TEST_F(ComputationTest, a_slot_s_contribution_is_the_engine_s_with_the_slot_s_own_seed) {
  const auto made = sampled_lease(3, {5, 1});
  const auto views = views_of(made.lease.tensors, made.payload);
  std::vector<float> expected(state_.size());
  const auto sums =
      engine_.compute(state_, {views[0], views[1]}, slot_seed(made.lease.seed, 5), expected).value();
  const Computed computed = run({5, 1});
  EXPECT_EQ(std::memcmp(computed.values->data(), expected.data(), expected.size() * sizeof(float)), 0);
  EXPECT_EQ(computed.sums.samples, 4u);
  EXPECT_EQ(computed.sums.loss, sums.loss);
  EXPECT_GT(computed.sums.loss, 0.0);
}

RC_GTEST_FIXTURE_PROP(ComputationTest, a_block_comes_to_the_sum_of_its_slots_along_the_tree, ()) {
  const auto count = *rc::gen::inRange(1u, 33u);
  const SlotBlock block{*rc::gen::inRange(0u, 9u) * std::bit_ceil(count), count};
  Reduction reduction(count, state_.size());
  std::vector<Reduction::Buffer> spare;
  for (std::uint32_t i = 0; i < count; ++i) {
    Computed slot = run({block.first_slot + i, 1});
    RC_ASSERT(reduction.add({i, 1}, std::move(slot.values), slot.sums, nullptr, spare).ok());
  }
  Sums sums;
  const Reduction::Buffer expected = reduction.take(sums);
  const Computed computed = run(block);
  RC_ASSERT(std::memcmp(computed.values->data(), expected->data(), state_.size() * sizeof(float)) == 0);
  RC_ASSERT(computed.sums.loss == sums.loss);
  RC_ASSERT(computed.sums.samples == sums.samples);
}

TEST_F(ComputationTest, the_order_of_the_sum_shows_in_the_fake_engine_s_bits) {
  // What the property above rests on: added up in another order, the same slots come to other bits.
  std::vector<float> in_order(state_.size());
  for (std::uint32_t slot = 8; slot-- > 0;) {
    const Computed computed = run({slot, 1});
    const auto* values = reinterpret_cast<const float*>(computed.values->data());
    for (std::size_t i = 0; i < in_order.size(); ++i) in_order[i] += values[i];
  }
  const Computed computed = run({0, 8});
  EXPECT_NE(std::memcmp(computed.values->data(), in_order.data(), in_order.size() * sizeof(float)), 0);
}

TEST_F(ComputationTest, memory_that_is_given_back_is_used_again_and_changes_nothing) {
  Computed first = run({0, 4});
  const std::vector<std::byte> expected(bytes_of_values(first).begin(), bytes_of_values(first).end());
  std::memset(first.values->data(), 0xff, expected.size());
  computation_.give_back(std::move(first.values));
  const Computed again = run({0, 4});
  EXPECT_TRUE(std::ranges::equal(bytes_of_values(again), expected));
}

RC_GTEST_FIXTURE_PROP(ComputationTest, an_evaluation_of_a_block_adds_its_slots_up_along_the_tree, ()) {
  const auto count = *rc::gen::inRange(1u, 33u);
  const SlotBlock block{*rc::gen::inRange(0u, 9u) * std::bit_ceil(count), count};
  std::vector<Sums> level;
  std::uint64_t correct = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Computed slot = run({block.first_slot + i, 1}, Work::evaluate);
    RC_ASSERT(slot.values == nullptr);
    level.push_back(slot.sums);
    correct += slot.correct;
  }
  for (; level.size() > 1; level.resize((level.size() + 1) / 2)) {
    for (std::size_t i = 0; i < level.size() / 2; ++i) level[i] = add(level[2 * i], level[2 * i + 1]);
    if (level.size() % 2 == 1) level[level.size() / 2] = level.back();
  }
  const Computed computed = run(block, Work::evaluate);
  RC_ASSERT(computed.sums.loss == level[0].loss);
  RC_ASSERT(computed.sums.samples == level[0].samples);
  RC_ASSERT(computed.correct == correct);
}

TEST_F(ComputationTest, an_engine_s_refusal_is_handed_on) {
  FakeEngine refusing([](std::uint64_t, std::span<float>) -> Status { return invalid("no such layer"); });
  Computation computation(refusing);
  const auto made = sampled_lease(3, {0, 2});
  EXPECT_EQ(computation.run(made.lease, made.payload, state_).error().message, "no such layer");
}

}  // namespace
}  // namespace w5xde
