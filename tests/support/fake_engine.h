// An engine of plain arithmetic: no library, no thread, exact, and quick. Its model is drawn towards the
// inputs it sees, with noise from the slot's seed, and its floats do not add up the same in another order: a
// sum along another tree, a sample too many, a wrong seed or a wrong version of the state all show in the
// bits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "w5xde/engine.h"

namespace w5xde {

class FakeEngine final : public Engine {
 public:
  // Called with every contribution before it is handed on: tests spoil it here, or refuse it.
  using Touch = std::function<Status(std::uint64_t seed, std::span<float> contribution)>;

  // `constant`: gradients do not depend on the parameters, so that their sum over a run is known beforehand.
  enum class Gradient { drawn, constant };

  explicit FakeEngine(Touch touch = {}, Gradient gradient = Gradient::drawn);

  // Called with every evaluation before it is handed on.
  std::function<void(Evaluation& evaluation)> touch_evaluation;

  std::string name() const override { return "fake 1"; }
  const ModelDescription& description() const override { return description_; }
  bool uses_cores() const override { return true; }
  Status initialise(std::uint64_t seed, std::span<float> state) override;
  using Engine::compute;
  Result<Sums> compute(std::span<const float> state, const Slot& slot, Addends addends,
                       std::span<float> contribution) override;
  Result<Evaluation> evaluate(std::span<const float> state, const SlotSamples& samples) override;

 private:
  Result<Sums> compute_slot(std::span<const float> state, const Slot& slot, std::span<float> contribution);

  ModelDescription description_;
  Touch touch_;
  Gradient gradient_;
};

}  // namespace w5xde
