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

// Updates parameters in one pass over the block. The arithmetic is torch.optim's, in its order, but for the
// last bit of a division. As there, a parameter without a gradient (w5xde/no_gradient.h) is left as it is,
// with its state and its own count of steps. The result does not depend on the number of threads.
class Optimizer {
 public:
  Optimizer(const OptimizerOptions& options, const std::shared_ptr<const BlockLayout>& layout);

  // `gradient` is scaled by gradient_scale first (1 / samples, clipping); learning_rate is this step's.
  void step(std::span<float> parameters, std::span<const float> gradient, float gradient_scale,
            double learning_rate, ThreadPool* pool) {
    begin_step();
    step_part(0, parameters, gradient, gradient_scale, learning_rate, pool);
  }
  // The same, part by part: the floats from `begin` on, each once, in order, with the same scale and rate.
  void begin_step() { ++steps_; }
  void step_part(std::size_t begin, std::span<float> parameters, std::span<const float> gradient,
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
  void step_alike(std::uint64_t steps, std::size_t begin, std::span<float> parameters,
                  std::span<const float> gradient, float gradient_scale, double learning_rate,
                  ThreadPool* pool);

  OptimizerOptions options_;
  std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::uint64_t> without_gradient_;  // steps, of each parameter of the layout
  std::vector<bool> left_alone_;                 // likewise: in the step at hand
  std::vector<State> states_;
  std::uint64_t steps_ = 0;
};

// The Euclidean norm of the gradient times `scale`; the same bits for any number of threads.
double norm_of(std::span<const float> gradient, double scale, ThreadPool* pool);

}  // namespace w5xde
