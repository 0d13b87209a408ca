#include "support/fake_engine.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "learn/reduction.h"
#include "learn/seeds.h"

namespace w5xde {

namespace {

// Ids too, as numbers of about the size that others have.
template <class T>
void append_numbers(const SampleTensor& tensor, float unit, std::vector<float>& numbers) {
  for (std::size_t i = 0; i < tensor.shape.elements(); ++i)
    numbers.push_back(static_cast<float>(load<T>(tensor.bytes.data() + i * sizeof(T))) * unit);
}

std::vector<float> numbers_of(const SampleTensor& tensor) {
  constexpr float kIdUnit = 1.0F / 256;
  std::vector<float> numbers;
  numbers.reserve(tensor.shape.elements());
  switch (tensor.dtype) {
    case DType::u8:
      append_numbers<std::uint8_t>(tensor, kIdUnit, numbers);
      break;
    case DType::i32:
      append_numbers<std::int32_t>(tensor, kIdUnit, numbers);
      break;
    default:
      append_numbers<float>(tensor, 1, numbers);
  }
  return numbers;
}

}  // namespace

FakeEngine::FakeEngine(Touch touch, Gradient gradient) : touch_(std::move(touch)), gradient_(gradient) {
  description_.parameters = BlockLayout::make({{"weight", {7, 3}}, {"bias", {3}}}, 1000).value();
  description_.buffers = BlockLayout::make({{"mean", {5}}}, 1000).value();
}

Status FakeEngine::initialise(std::uint64_t seed, std::span<float> state) {
  std::ranges::fill(state, 0.0f);
  Random random(seed);
  for (const auto& entry : description_.parameters->entries()) {
    for (float& value : state.subspan(entry.offset, entry.shape.elements())) {
      value = static_cast<float>(random.normal());
    }
  }
  return {};
}

Result<Sums> FakeEngine::compute_slot(std::span<const float> state, const Slot& slot,
                                      std::span<float> contribution) {
  const auto& [samples, seed] = slot;
  const auto inputs = numbers_of(samples.inputs[0]);
  const auto count = static_cast<std::size_t>(samples.inputs[0].shape[0]);
  const std::size_t features = count == 0 ? 1 : inputs.size() / count;
  Sums sums{.samples = count};
  for (const auto& entry : description_.parameters->entries()) {
    for (std::size_t i = 0; i < entry.shape.elements(); ++i) {
      const float value = gradient_ == Gradient::constant ? 0 : state[entry.offset + i];
      for (std::size_t sample = 0; sample < count; ++sample) {
        const double noise = static_cast<double>(mix(seed, sample * 1000 + i) >> 40) * 0x1.0p-24 - 0.5;
        const float pull =
            (value - inputs[sample * features + i % features]) * static_cast<float>(1 + 0.2 * noise);
        contribution[entry.offset + i] += pull;
        sums.loss += 0.5 * double{pull} * double{pull};
      }
    }
  }
  const std::size_t first = description_.parameters->floats();
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t sample = 0; sample < count; ++sample) {
      contribution[first + i] += 0.1f * (inputs[sample * features + i % features] - state[first + i]);
    }
  }
  // A node warms up with a lease of zeros; what tests spoil is the real ones.
  if (touch_ && seed != slot_seed(0, 0)) W5XDE_CHECK(touch_(seed, contribution));
  return sums;
}

Result<Sums> FakeEngine::compute(std::span<const float> state, const Slot& slot, Addends addends,
                                 std::span<float> contribution) {
  std::vector<float> sum(contribution.size());
  W5XDE_TRY(const Sums sums, compute_slot(state, slot, sum));
  for (const float* addend : addends) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = addend[i] + sum[i];
  }
  std::ranges::copy(sum, contribution.begin());
  return sums;
}

Result<Evaluation> FakeEngine::evaluate(std::span<const float> state, const SlotSamples& samples) {
  const auto inputs = numbers_of(samples.inputs[0]);
  const auto count = static_cast<std::size_t>(samples.inputs[0].shape[0]);
  const std::size_t features = count == 0 ? 1 : inputs.size() / count;
  Evaluation evaluation{.counted = count, .samples = count};
  for (std::size_t sample = 0; sample < count; ++sample) {
    const double miss = double{state[sample % 16]} - double{inputs[sample * features]};
    evaluation.loss_sum += std::abs(miss) / 3;
    const auto target = std::to_integer<unsigned>(samples.targets.bytes[sample]);
    if (static_cast<unsigned>(std::abs(miss) * 3) % 10 == target) ++evaluation.correct;
  }
  if (touch_evaluation) touch_evaluation(evaluation);
  return evaluation;
}

}  // namespace w5xde
