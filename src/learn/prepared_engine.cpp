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

SampleInputs PreparedEngine::prepared(const SampleInputs& inputs, Random* draws) {
  if (input_ >= inputs.size()) return inputs;
  const SampleTensor& from = inputs[input_];
  const bool fits = from.shape.rank() == field_.shape.rank() + 1 &&
                    std::ranges::equal(from.shape.dims().subspan(1), field_.shape.dims()) &&
                    (from.dtype == DType::u8 || !is_whole_number(from.dtype)) && size_of(from.dtype) <= 8 &&
                    from.dtype != DType::boolean && from.dtype != DType::c64;
  if (!fits) return inputs;
  SampleInputs made;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    made.push_back(i == input_ ? prepare_samples(preparation_, field_, from, draws, memory_) : inputs[i]);
  return made;
}

Result<Sums> PreparedEngine::compute(std::span<const float> state, const Slot& slot, Addends addends,
                                     std::span<float> contribution) {
  Random draws = preparation_draws(slot.seed);
  const Slot then{{prepared(slot.samples.inputs, &draws), slot.samples.targets}, slot.seed};
  return engine_->compute(state, then, addends, contribution);
}

Result<Evaluation> PreparedEngine::evaluate(std::span<const float> state, const SlotSamples& samples) {
  return engine_->evaluate(state, {prepared(samples.inputs, nullptr), samples.targets});
}

Result<Outputs> PreparedEngine::predict(std::span<const float> state, const SampleInputs& inputs) {
  return engine_->predict(state, prepared(inputs, nullptr));
}

}  // namespace w5xde
