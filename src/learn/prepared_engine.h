#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "w5xde/engine.h"

namespace w5xde {

// An engine whose samples are prepared as ModelOptions::preparation says before the engine that it stands for
// is given them.
class PreparedEngine : public Engine {
 public:
  using Make = std::function<Result<std::unique_ptr<Engine>>(const ModelOptions&)>;

  // With what `make` makes for samples as they are then. `invalid` where these samples cannot be prepared so.
  static Result<std::unique_ptr<Engine>> make(const ModelOptions& options, const Make& make);

  std::string name() const override { return engine_->name(); }
  const ModelDescription& description() const override { return engine_->description(); }
  bool uses_cores() const override { return engine_->uses_cores(); }
  Status initialise(std::uint64_t seed, std::span<float> state) override {
    return engine_->initialise(seed, state);
  }
  using Engine::compute;
  Result<Sums> compute(std::span<const float> state, const Slot& slot, Addends addends,
                       std::span<float> contribution) override;
  Result<Evaluation> evaluate(std::span<const float> state, const SlotSamples& samples) override;
  Result<Outputs> predict(std::span<const float> state, const SampleInputs& inputs) override;
  Status save_model(std::span<const float> state, const std::filesystem::path& file,
                    std::span<const std::string> frozen) override {
    return engine_->save_model(state, file, frozen);
  }

 private:
  PreparedEngine(const ModelOptions& options, std::size_t input, std::unique_ptr<Engine> engine)
      : preparation_(options.preparation),
        input_(input),
        field_(options.inputs[input]),
        engine_(std::move(engine)) {}

  // What is no sample of the field stays as it is: the engine says what is wrong with it.
  SampleInputs prepared(const SampleInputs& inputs, Random* draws);

  SamplePreparation preparation_;
  std::size_t input_;
  SampleField field_;
  std::unique_ptr<Engine> engine_;
  std::vector<std::byte> memory_;  // of one slot's prepared samples
};

}  // namespace w5xde
