#include "learn/prepared_engine.h"

#include <algorithm>

#include "learn/sample_preparation.h"

namespace w5xde {

Result<std::unique_ptr<Engine>> PreparedEngine::make(const ModelOptions& options, const Make& make) {
  W5XDE_TRY(const std::size_t input, prepared_input(options.preparation, options.inputs, options.targets));
  ModelOptions then = options;
  then.preparation = {};
  then.inputs[input] = prepared_field(options.preparation, options.inputs[input]);
  W5XDE_TRY(auto engine, make(then));
  return std::unique_ptr<Engine>(new PreparedEngine(options, input, std::move(engine)));
}

SampleInputs PreparedEngine::prepared(const SampleInputs& inputs, Random* draws,
                                      std::vector<std::byte>& memory) const {
  if (input_ >= inputs.size()) return inputs;
  const SampleTensor& from = inputs[input_];
  const bool fits = from.shape.rank() == field_.shape.rank() + 1 &&
                    std::ranges::equal(from.shape.dims().subspan(1), field_.shape.dims()) &&
                    (from.dtype == DType::u8 || !is_whole_number(from.dtype)) && size_of(from.dtype) <= 8 &&
                    from.dtype != DType::boolean && from.dtype != DType::c64;
  if (!fits) return inputs;
  SampleInputs made;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    made.push_back(i == input_ ? prepare_samples(preparation_, field_, from, draws, memory) : inputs[i]);
  return made;
}

Result<Sums> PreparedEngine::compute(std::span<const float> state, std::span<const Slot> slots,
                                     Addends addends, std::span<float> contribution) {
  slots_.assign(slots.begin(), slots.end());
  memory_.resize(std::max(memory_.size(), slots.size()));
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    Random draws = preparation_draws(slots_[i].seed);
    slots_[i].samples.inputs = prepared(slots[i].samples.inputs, &draws, memory_[i]);
  }
  return engine_->compute(state, slots_, addends, contribution);
}

Result<Evaluation> PreparedEngine::evaluate(std::span<const float> state, const SlotSamples& samples) {
  memory_.resize(std::max<std::size_t>(memory_.size(), 1));
  return engine_->evaluate(state, {prepared(samples.inputs, nullptr, memory_[0]), samples.targets});
}

Result<Outputs> PreparedEngine::predict(std::span<const float> state, const SampleInputs& inputs) {
  memory_.resize(std::max<std::size_t>(memory_.size(), 1));
  return engine_->predict(state, prepared(inputs, nullptr, memory_[0]));
}

}  // namespace w5xde
