#include "coordinator/batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "data/array_dataset.h"

namespace w5xde {
namespace {

// A hundred samples in slots of nine: eleven full ones an epoch, and one of a single sample.
class BatchesTest : public testing::Test {
 protected:
  BatchesTest()
      : data_(open_dataset("random:5,10,101", Split::train, 1).value()), batches_(data_, options_) {}

  // The bytes of the slots' samples, taken one by one: inputs, padding, targets.
  std::vector<std::byte> plain(std::uint64_t first, std::uint32_t count) {
    Sampler sampler(options_);
    std::vector<std::byte> inputs, targets;
    for (std::uint64_t slot = first; slot < first + count; ++slot) {
      for (const std::uint32_t number : sampler.samples_of(slot)) {
        std::array<std::byte, 20> input{};
        std::array<std::byte, 4> target{};
        data_->gather({&number, 1}, input, target);
        inputs.insert(inputs.end(), input.begin(), input.end());
        targets.insert(targets.end(), target.begin(), target.end());
      }
    }
    inputs.resize(align_up(inputs.size(), kPayloadAlignment));
    inputs.insert(inputs.end(), targets.begin(), targets.end());
    return inputs;
  }
  static std::vector<std::byte> bytes_of_batch(const Batch& batch) {
    std::vector<std::byte> bytes(batch.payload[0].bytes().begin(), batch.payload[0].bytes().end());
    bytes.resize(align_up(bytes.size(), kPayloadAlignment));
    bytes.insert(bytes.end(), batch.payload[1].bytes().begin(), batch.payload[1].bytes().end());
    return bytes;
  }

  const Sampler::Options options_{.samples = 101, .batch = 9, .seed = 4};
  std::shared_ptr<const Dataset> data_;
  Batches batches_;
};

TEST_F(BatchesTest, a_payload_is_the_inputs_of_all_slots_then_their_targets_at_the_next_multiple_of_eight) {
  const auto batch = batches_.make(3, 3);
  EXPECT_EQ(batch.slot_samples, (std::vector<std::uint32_t>{9, 9, 9}));
  EXPECT_EQ(batch.tensors, (TensorList{{DType::f32, Shape{27, 5}}, {DType::i32, Shape{27}}}));
  EXPECT_EQ(payload_bytes_of(batch.payload), 544u + 27 * 4);  // 540 bytes of inputs, 4 of padding
  EXPECT_EQ(bytes_of_batch(batch), plain(3, 3));
}

TEST_F(BatchesTest, the_last_slot_of_an_epoch_has_what_is_left_and_the_next_begins_another) {
  const auto batch = batches_.make(10, 4);
  EXPECT_EQ(batch.slot_samples, (std::vector<std::uint32_t>{9, 2, 9, 9}));
  EXPECT_EQ(batch.tensors[0].shape, (Shape{29, 5}));
  EXPECT_EQ(bytes_of_batch(batch), plain(10, 4));
}

TEST_F(BatchesTest, however_slots_are_put_together_their_samples_are_the_same) {
  const auto whole = batches_.make(8, 4);
  std::vector<std::byte> inputs;
  for (std::uint64_t slot = 8; slot < 12; ++slot) {
    const auto one = batches_.make(slot, 1);
    const Bytes part = one.payload[0].bytes();
    inputs.insert(inputs.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(std::ranges::equal(inputs, whole.payload[0].bytes()));
}

TEST_F(BatchesTest, memory_is_used_again_but_never_while_somebody_holds_the_batch) {
  std::vector<std::pair<Batch, std::uint64_t>> held;
  for (std::uint64_t round = 0; round < 100; ++round) {  // more than are kept for use again
    held.emplace_back(batches_.make(round, 2), round);
    if (round % 3 == 0) held.erase(held.begin() + static_cast<std::ptrdiff_t>(round % held.size()));
  }
  std::set<const std::byte*> places;
  for (const auto& [batch, first] : held) {
    EXPECT_EQ(bytes_of_batch(batch), plain(first, 2)) << first;
    EXPECT_TRUE(places.insert(batch.payload[0].bytes().data()).second) << "two batches in one place";
  }
  const std::byte* place = held.front().first.payload[0].bytes().data();
  held.erase(held.begin());
  EXPECT_EQ(batches_.make(7, 1).payload[0].bytes().data(), place) << "what is free is taken first";
}

TEST_F(BatchesTest, slots_that_were_prepared_are_not_copied_again) {
  batches_.prepare(24, 8);
  const auto whole = batches_.make(24, 8);
  const auto part = batches_.make(26, 2), again = batches_.make(26, 2);
  EXPECT_EQ(part.payload[0].bytes().data(), whole.payload[0].bytes().data() + 2 * 9 * 20);
  EXPECT_EQ(part.payload[0].bytes().data(), again.payload[0].bytes().data());
  EXPECT_EQ(bytes_of_batch(part), plain(26, 2));
  // Across the end of what is prepared, and of the epoch.
  EXPECT_EQ(bytes_of_batch(batches_.make(30, 8)), plain(30, 8));
  EXPECT_EQ(bytes_of_batch(batches_.make(20, 8)), plain(20, 8));
}

TEST_F(BatchesTest, what_is_prepared_stays_as_it_is_while_a_lease_holds_it) {
  std::vector<std::pair<Batch, std::uint64_t>> held;
  for (std::uint64_t first = 0; first < 400; first += 4) {
    batches_.prepare(first + 4, 4);
    held.emplace_back(batches_.make(first + 1, 2), first + 1);
    if (held.size() > 20) held.erase(held.begin());
    for (const auto& [batch, slot] : held) ASSERT_EQ(bytes_of_batch(batch), plain(slot, 2)) << slot;
  }
}

TEST(Batches, large_steps_are_prepared_on_another_thread) {
  const auto data = open_dataset("random:1000,10,4096", Split::train, 1).value();
  const Sampler::Options options{.samples = 4096, .batch = 64, .seed = 4};
  ThreadPool pool(1);
  Batches ahead(data, options, &pool), plain(data, options);
  for (std::uint64_t step = 0; step < 30; ++step) {
    ahead.prepare((step + 1) * 8, 8);
    const Batch batch = ahead.make(step * 8 + 2, 2), expected = plain.make(step * 8 + 2, 2);
    for (const std::size_t i : {0u, 1u}) {
      ASSERT_TRUE(std::ranges::equal(batch.payload[i].bytes(), expected.payload[i].bytes())) << step;
    }
  }
}

// Three numbers a sample, and one as its target.
std::shared_ptr<const Dataset> regression(std::vector<float> inputs, std::vector<float> targets) {
  const auto owned = std::make_shared<std::pair<std::vector<float>, std::vector<float>>>(std::move(inputs),
                                                                                         std::move(targets));
  const auto samples = static_cast<std::int64_t>(owned->second.size());
  const auto view = [](const std::vector<float>& floats, const Shape& shape) {
    return TensorView(std::as_bytes(std::span(floats)), DType::f32, shape);
  };
  return make_array_dataset({"x", view(owned->first, {samples, 3}), owned},
                            {"y", view(owned->second, {samples}), owned})
      .value();
}

TEST(FirstNotFiniteTest, a_sample_with_nan_or_infinity_is_found_by_its_number_in_the_slots_that_have_it) {
  std::vector<float> inputs(60), targets(20);
  inputs[3 * 7 + 1] = std::nanf("");
  targets[12] = -std::numeric_limits<float>::infinity();
  const Sampler::Options options{.samples = 20, .batch = 4, .seed = 4};
  Batches batches(regression(inputs, targets), options);
  Sampler sampler(options);
  std::set<std::uint32_t> found;
  for (std::uint64_t slot = 0; slot < sampler.slots_per_epoch(); ++slot) {
    const auto numbers = sampler.samples_of(slot);
    const bool has_input = std::ranges::count(numbers, 7u) > 0,
               has_target = std::ranges::count(numbers, 12u) > 0;
    const auto bad = batches.first_not_finite(slot, 1);
    ASSERT_EQ(bad.has_value(), has_input || has_target);
    if (!bad) continue;
    EXPECT_EQ(bad->number, bad->is_target ? 12u : 7u);
    found.insert(bad->number);
  }
  EXPECT_FALSE(found.empty());
  EXPECT_TRUE(batches.first_not_finite(0, 5).has_value()) << "all slots at once";
}

TEST_F(BatchesTest, samples_that_are_finite_are_not_suspected) {
  EXPECT_FALSE(batches_.first_not_finite(0, 20).has_value());
}

}  // namespace
}  // namespace w5xde
