#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/parameter_block.h"
#include "w5xde/result.h"

namespace w5xde {

// As torch.optim has them, names and defaults included.
struct OptimizerOptions {
  enum class Kind { sgd, adam, adamw };

  Kind kind = Kind::sgd;
  double learning_rate = 0.01;
  double momentum = 0;      // sgd
  bool nesterov = false;    // sgd
  double weight_decay = 0;  // adamw: decoupled
  double beta1 = 0.9;       // adam, adamw
  double beta2 = 0.999;
  double epsilon = 1e-8;

  Status check() const;
};

Result<OptimizerOptions::Kind> parse_optimizer(std::string_view name);
std::string_view name_of(OptimizerOptions::Kind kind);

// Updates parameters in one pass over the block: what is in the cache is checked for NaN and infinity, and
// stepped from where it is to where the next version belongs. The arithmetic is torch.optim's, in its order,
// but for the last bit of a division. As there, a parameter without a gradient (w5xde/no_gradient.h) is left
// as it is, with its state and its own count of steps. The result does not depend on the number of threads.
class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, const std::shared_ptr<const BlockLayout>& layout);

  // `gradient` is scaled by gradient_scale first (1 / samples, clipping); learning_rate is this step's.
  bool step(std::span<float> parameters, std::span<const float> gradient, float gradient_scale,
            double learning_rate, ThreadPool* pool) {
    begin_step();
    return step_part(0, {parameters, parameters}, gradient, gradient_scale, learning_rate, pool);
  }
  // The same, part by part: the floats from `begin` on, each once, in order, with the same scale and rate.
  void begin_step() { ++steps_; }
  // No part was taken of the step that was begun.
  void cancel_step() { --steps_; }
  // The parameters of this version, and where the next one's go, which may be the same memory.
  struct Versions {
    std::span<const float> before;
    std::span<float> after;

    Versions part(std::size_t first, std::size_t count) const {
      return {before.subspan(first, count), after.subspan(first, count)};
    }
  };
  // False: the gradient is not finite. Nothing has changed then but what is in `after`.
  bool step_part(std::size_t begin, const Versions& parameters, std::span<const float> gradient,
                 float gradient_scale, double learning_rate, ThreadPool* pool);

  // How many steps were taken, and in how many of them each parameter had no gradient.
  std::uint64_t steps() const { return steps_; }
  std::span<const std::uint64_t> steps_without_gradient() const { return without_gradient_; }
  void set_steps(std::uint64_t steps, std::span<const std::uint64_t> without_gradient = {});

  struct State {
    std::string name;  // "momentum", "first_moment", …
    ParameterBlock block;
  };
  std::span<State> states() { return states_; }
  const OptimizerOptions& options() const { return options_; }

 private:
  // Floats begin … of the block, which have all had this many steps, this one included.
  bool step_alike(std::uint64_t steps, std::size_t begin, const Versions& parameters,
                  std::span<const float> gradient, float gradient_scale, double learning_rate,
                  ThreadPool* pool);

  OptimizerOptions options_;
  std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::uint64_t> without_gradient_;  // steps, of each parameter of the layout
  std::vector<bool> left_alone_;                 // likewise: in the step at hand
  std::vector<State> states_;
  std::uint64_t steps_ = 0;
};

// Whether every float is finite: NaN or infinity would spread to the whole model.
bool all_finite(std::span<const float> values);
bool all_finite_in_parallel(std::span<const float> values, ThreadPool* pool);

// The Euclidean norm of the gradient times `scale`; the same bits for any number of threads. Finite where
// every float is.
double norm_of(std::span<const float> gradient, double scale, ThreadPool* pool);

}  // namespace w5xde
