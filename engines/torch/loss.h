#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <string>

#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace w5xde::torch_engine {

// Whether options.loss, unless it is "auto", goes with the data and the model.
Status check_loss(const ModelOptions& options, bool scripted);
// What "auto" is for data with `classes` classes (0: no classes), where forward() does not need targets.
std::string usual_loss(std::uint32_t classes);

// The loss of a slot: the sum over its samples of each one's mean over its targets. It is a tensor times a
// factor: the factor goes into backward's root.
class LossFunction {
 public:
  // Of a loss that check_loss() takes and that is not "auto".
  explicit LossFunction(const ModelOptions& options);

  // The model computes it: what forward() gives is the mean over the samples.
  bool is_own() const { return kind_ == Kind::own; }

  // Whether the model's outputs, or its own loss, have a shape that goes with targets of these sizes.
  Status check(at::IntArrayRef outputs, at::IntArrayRef targets) const;
  // Of what check() takes.
  at::Tensor tensor(const at::Tensor& outputs, const at::Tensor& targets) const;
  double factor(const at::Tensor& targets) const;

  // Adds the targets that are classes and count, and those of them that the largest output names.
  void count(const at::Tensor& outputs, const at::Tensor& targets, Evaluation& evaluation) const;

 private:
  enum class Kind { cross_entropy, bce, mse, own };

  bool classes_are_last(at::IntArrayRef outputs, at::IntArrayRef targets) const;
  bool classes_are_second(at::IntArrayRef outputs, at::IntArrayRef targets) const;
  at::Tensor rows_of(const at::Tensor& outputs, const at::Tensor& targets) const;

  Kind kind_;
  std::int64_t classes_;
  std::optional<std::int64_t> ignored_;
};

}  // namespace w5xde::torch_engine
