#include "node/computation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cstring>

#include "base/random.h"
#include "learn/prepared_engine.h"
#include "learn/seeds.h"
#include "support/fake_engine.h"
#include "support/sampled_lease.h"

namespace w5xde {
namespace {

Result<std::unique_ptr<Engine>> another(FakeEngine::Touch touch = {}) {
  return std::unique_ptr<Engine>(std::make_unique<FakeEngine>(std::move(touch)));
}

class ComputationTest : public testing::Test {
 protected:
  ComputationTest() : state_(engine_.description().floats()) {
    EXPECT_TRUE(engine_.initialise(7, state_).ok());
    for (std::size_t i = engine_.description().parameters->floats(); i < state_.size(); ++i) state_[i] = 0.5f;
  }

  Computed run(SlotBlock block, Work work = Work::train, std::uint32_t lanes = 1) {
    const auto made = sampled_lease(3, block, work);
    return std::move(computation_.run(made.lease, made.payload, state_, lanes)).value();
  }
  Bytes bytes_of_values(const Computed& computed) const {
    return {computed.values->data(), state_.size() * sizeof(float)};
  }

  FakeEngine engine_;
  std::vector<float> state_;
  SteadyClock clock_;
  Computation computation_{engine_, clock_, [] { return another(); }};
};

TEST_F(ComputationTest, a_slot_s_contribution_is_the_engine_s_with_the_slot_s_own_seed) {
  const auto made = sampled_lease(3, {5, 1});
  const auto views = views_of(made.lease.tensors, made.payload);
  std::vector<float> expected(state_.size());
  const SlotSamples samples{{{views[0].bytes(), views[0].dtype(), views[0].shape()}},
                            {views[1].bytes(), views[1].dtype(), views[1].shape()}};
  const auto sums = engine_.compute(state_, samples, slot_seed(made.lease.seed, 5), expected).value();
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

// A lease of images, whose samples depend on the slot alone.
SampledLease image_lease(SlotBlock block) {
  constexpr std::uint32_t kEach = 3;
  SampledLease made;
  made.lease = {.seed = 99, .block = block};
  std::vector<std::byte> classes;
  for (std::uint32_t slot = block.first_slot; slot < block.first_slot + block.slot_count; ++slot) {
    Random random(slot);
    made.lease.slot_samples.push_back(kEach);
    for (int i = 0; i < 32 * int{kEach}; ++i) made.payload.push_back(static_cast<std::byte>(random.next()));
    classes.resize(classes.size() + kEach);
  }
  const auto samples = static_cast<std::int64_t>(kEach * block.slot_count);
  made.lease.tensors = {{.dtype = DType::u8, .shape = Shape{samples, 2, 4, 4}},
                        {.dtype = DType::u8, .shape = Shape{samples}}};
  made.payload.insert(made.payload.end(), classes.begin(), classes.end());
  made.payload.resize(payload_bytes_of(made.lease.tensors));
  return made;
}

TEST_F(ComputationTest, a_slot_s_images_are_cropped_and_flipped_alike_whatever_lease_they_come_in) {
  const ModelOptions options{
      .model = "fake",
      .inputs = {{.name = "x", .dtype = DType::u8, .shape = {2, 4, 4}, .pixels = true}},
      .targets = {.name = "y", .dtype = DType::u8, .shape = {}},
      .preparation = {.mean = {0.3F, 0.6F}, .deviation = {0.5F, 0.25F}, .crop_pixels = 2, .flip = true}};
  const auto make = [&] {
    return PreparedEngine::make(options, [](const ModelOptions&) { return another(); });
  };
  const auto engine = make().value();
  Computation computation(*engine, clock_, make);
  const auto compute = [&](SlotBlock block, std::uint32_t lanes) {
    const auto made = image_lease(block);
    return std::move(computation.run(made.lease, made.payload, state_, lanes)).value();
  };
  Reduction reduction(8, state_.size());
  std::vector<Reduction::Buffer> spare;
  for (const SlotBlock block : {SlotBlock{8, 1}, SlotBlock{9, 1}, SlotBlock{10, 2}, SlotBlock{12, 4}}) {
    Computed part = compute(block, 1);
    ASSERT_TRUE(
        reduction
            .add({block.first_slot - 8, block.slot_count}, std::move(part.values), part.sums, nullptr, spare)
            .ok());
  }
  Sums sums;
  const Reduction::Buffer expected = reduction.take(sums);
  for (const std::uint32_t lanes : {1u, 2u, 3u}) {
    const Computed whole = compute({8, 8}, lanes);
    EXPECT_EQ(std::memcmp(whole.values->data(), expected->data(), state_.size() * sizeof(float)), 0) << lanes;
  }
}

TEST_F(ComputationTest, the_order_of_the_sum_shows_in_the_fake_engine_s_bits) {
  // What the property above rests on: added up in another order, the same slots give other bits.
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

RC_GTEST_PROP(BlocksForLanes, leave_no_lane_with_more_than_its_share, ()) {
  const auto slots = *rc::gen::inRange(1u, 300u);
  const auto lanes = *rc::gen::inRange(1u, 17u);
  std::vector<std::uint32_t> done(lanes);
  std::uint32_t next = 0;
  const auto blocks = blocks_for_lanes(slots, lanes);
  for (const SlotBlock block : blocks) {
    RC_ASSERT(block.valid() && block.first_slot == next);
    next = block.end();
    *std::ranges::min_element(done) += block.slot_count;
  }
  RC_ASSERT(next == slots);
  RC_ASSERT(std::ranges::max(done) == (slots + lanes - 1) / lanes);
  RC_ASSERT(blocks.size() <= lanes * std::bit_width(slots));
}

RC_GTEST_FIXTURE_PROP(ComputationTest, in_several_lanes_a_block_comes_to_the_same_bits, ()) {
  const auto count = *rc::gen::inRange(1u, 33u);
  const SlotBlock block{*rc::gen::inRange(0u, 9u) * std::bit_ceil(count), count};
  const auto lanes = *rc::gen::inRange(2u, 6u);
  const Computed alone = run(block), together = run(block, Work::train, lanes);
  RC_ASSERT(together.lanes == std::min(lanes, count));
  RC_ASSERT(std::ranges::equal(bytes_of_values(alone), bytes_of_values(together)));
  RC_ASSERT(alone.sums.loss == together.sums.loss);
  RC_ASSERT(alone.sums.samples == together.sums.samples);
  const Computed evaluated = run(block, Work::evaluate), in_lanes = run(block, Work::evaluate, lanes);
  RC_ASSERT(evaluated.sums.loss == in_lanes.sums.loss);
  RC_ASSERT(evaluated.correct == in_lanes.correct);
}

TEST_F(ComputationTest, lanes_compute_at_the_same_time_each_with_an_engine_of_its_own) {
  // Each waits for the other: one after the other, neither would come to an end.
  std::barrier both(2);
  const auto meets = [&](std::uint64_t, std::span<float>) -> Status {
    both.arrive_and_wait();
    return {};
  };
  FakeEngine engine(meets);
  int made = 0;
  Computation computation(engine, clock_, [&] {
    ++made;
    return another(meets);
  });
  const auto lease = sampled_lease(3, {0, 8});
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(computation.run(lease.lease, lease.payload, state_, 2).value().lanes, 2u);
  EXPECT_EQ(made, 1);
}

TEST_F(ComputationTest, what_was_prepared_is_not_made_again_by_a_lease_and_changes_no_bit) {
  const Computed expected = run({0, 8});
  int made = 0;
  Computation computation(engine_, clock_, [&] {
    ++made;
    return another();
  });
  computation.prepare(3, 3);
  EXPECT_EQ(made, 2);
  const auto lease = sampled_lease(3, {0, 8});
  const Computed computed = computation.run(lease.lease, lease.payload, state_, 3).value();
  EXPECT_EQ(made, 2);
  EXPECT_EQ(computed.lanes, 3u);
  EXPECT_TRUE(std::ranges::equal(bytes_of_values(computed), bytes_of_values(expected)));
}

TEST_F(ComputationTest, who_cannot_make_another_engine_has_one_lane) {
  Computation computation(engine_, clock_);
  const auto made = sampled_lease(3, {0, 8});
  EXPECT_EQ(computation.run(made.lease, made.payload, state_, 4).value().lanes, 1u);
}

TEST_F(ComputationTest, an_engine_s_refusal_is_handed_on_from_every_lane) {
  const auto made = sampled_lease(3, {0, 8});
  const auto refuses = [last = slot_seed(made.lease.seed, 7)](std::uint64_t seed,
                                                              std::span<float>) -> Status {
    if (seed == last) return invalid("no such layer");
    return {};
  };
  FakeEngine refusing(refuses);
  Computation computation(refusing, clock_, [&] { return another(refuses); });
  EXPECT_EQ(computation.run(made.lease, made.payload, state_, 2).error().message, "no such layer");
}

TEST_F(ComputationTest, an_engine_s_refusal_is_handed_on) {
  FakeEngine refusing([](std::uint64_t, std::span<float>) -> Status { return invalid("no such layer"); });
  Computation computation(refusing, clock_);
  const auto made = sampled_lease(3, {0, 2});
  EXPECT_EQ(computation.run(made.lease, made.payload, state_).error().message, "no such layer");
}

}  // namespace
}  // namespace w5xde
