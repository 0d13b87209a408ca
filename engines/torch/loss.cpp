#include "loss.h"

#include <c10/util/StringUtil.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace w5xde::torch_engine {

Status check_loss(const ModelOptions& options, bool scripted) {
  if (options.ignore_index && (options.loss == "bce" || options.loss == "mse"))
    return invalid(
        fmt::format("--ignore-index is for targets that are classes, not for --loss {}", options.loss));
  if (options.loss == "auto") return {};
  if (options.loss == "cross-entropy") {
    if (options.classes > 0) return {};
    return invalid(
        "loss 'cross-entropy' needs targets that are classes: store them as whole numbers, in NumPy "
        "targets.astype('int64'). For values to predict type --loss mse");
  }
  if (options.loss == "bce" || options.loss == "mse") {
    if (options.classes == 0) return {};
    return invalid(fmt::format(
        "loss '{}' is for targets that are no classes; for classes type --loss cross-entropy, or store them "
        "as f32",
        options.loss));
  }
  if (options.loss == "own") {
    if (scripted) return {};
    return invalid(
        fmt::format("'{}' has no loss of its own; type --loss cross-entropy or --loss mse", options.model));
  }
  return invalid(
      fmt::format("there is no loss '{}'; there are auto, bce, cross-entropy, mse and own", options.loss));
}

std::string usual_loss(std::uint32_t classes) {
  return classes > 0 ? "cross-entropy" : "mse";
}

LossFunction::LossFunction(const ModelOptions& options)
    : kind_(options.loss == "own"   ? Kind::own
            : options.loss == "mse" ? Kind::mse
            : options.loss == "bce" ? Kind::bce
                                    : Kind::cross_entropy),
      classes_(options.classes),
      ignored_(options.ignore_index) {}

// Each target's classes side by side, as language models give them. There may be more than the data has met.
bool LossFunction::classes_are_last(at::IntArrayRef outputs, at::IntArrayRef targets) const {
  return outputs.size() == targets.size() + 1 && outputs.back() >= classes_ &&
         outputs.slice(0, targets.size()) == targets;
}

// As torch.nn.functional.cross_entropy wants them.
bool LossFunction::classes_are_second(at::IntArrayRef outputs, at::IntArrayRef targets) const {
  return outputs.size() == targets.size() + 1 && outputs.size() >= 2 && outputs[0] == targets[0] &&
         outputs[1] >= classes_ && outputs.slice(2) == targets.slice(1);
}

Status LossFunction::check(at::IntArrayRef outputs, at::IntArrayRef targets) const {
  if (kind_ == Kind::own) {
    if (c10::multiply_integers(outputs) == 1) return {};
    return invalid(fmt::format("the model's own loss is a tensor of {}, not one number", c10::str(outputs)));
  }
  if (kind_ != Kind::cross_entropy) {
    const bool fit = !outputs.empty() && outputs[0] == targets[0] &&
                     c10::multiply_integers(outputs) == c10::multiply_integers(targets);
    if (fit) return {};
    return invalid(fmt::format(
        "the model gives {} for targets of {}, and f32 targets are values to predict (regression). If they "
        "are classes, store them as whole numbers, in NumPy targets.astype('int64'); if they are values, "
        "the model has to give as many",
        c10::str(outputs), c10::str(targets)));
  }
  if (classes_are_last(outputs, targets) || classes_are_second(outputs, targets)) return {};
  std::vector<std::int64_t> last = targets.vec(), second = targets.vec();
  last.push_back(classes_);
  second.insert(second.begin() + 1, classes_);
  const std::string either = targets.size() > 1 ? " or " + c10::str(at::IntArrayRef(second)) : "";
  return invalid(
      fmt::format("the model gives {} where cross-entropy over {} classes needs {}{}, or more classes",
                  c10::str(outputs), classes_, c10::str(at::IntArrayRef(last)), either));
}

// A row of classes for each target, in the targets' order. Where both shapes fit, the classes are last.
at::Tensor LossFunction::rows_of(const at::Tensor& outputs, const at::Tensor& targets) const {
  if (targets.dim() == 1) return outputs;
  const bool last = classes_are_last(outputs.sizes(), targets.sizes());
  const at::Tensor rows = last ? outputs : outputs.movedim(1, -1);
  return rows.reshape({targets.numel(), rows.size(-1)});
}

at::Tensor LossFunction::tensor(const at::Tensor& outputs, const at::Tensor& targets) const {
  if (kind_ == Kind::own) return outputs.reshape({});
  if (kind_ == Kind::mse) return at::mse_loss(outputs.reshape(targets.sizes()), targets, at::Reduction::Sum);
  if (kind_ == Kind::bce) {
    return at::binary_cross_entropy_with_logits(outputs.reshape(targets.sizes()), targets, {}, {},
                                                at::Reduction::Sum);
  }
  const at::Tensor logarithms = at::log_softmax(rows_of(outputs, targets), 1);
  const at::Tensor flat = targets.reshape({-1});
  if (!ignored_) return at::nll_loss(logarithms, flat, {}, at::Reduction::Sum);
  // Each sample's mean over its targets that count; one without any adds nothing.
  const at::Tensor each = at::nll_loss(logarithms, flat, {}, at::Reduction::None, *ignored_);
  const at::Tensor counts = targets.ne(*ignored_).reshape({targets.size(0), -1}).sum(1).clamp_min(1);
  return (each.reshape({targets.size(0), -1}).sum(1) / counts).sum();
}

double LossFunction::factor(const at::Tensor& targets) const {
  const auto samples = static_cast<double>(targets.size(0));
  if (kind_ == Kind::own) return samples;
  if (kind_ == Kind::cross_entropy && ignored_) return 1;
  return samples / static_cast<double>(targets.numel());
}

void LossFunction::count(const at::Tensor& outputs, const at::Tensor& targets, Evaluation& evaluation) const {
  if (kind_ != Kind::cross_entropy) return;
  const at::Tensor flat = targets.reshape({-1});
  at::Tensor correct = rows_of(outputs, targets).argmax(1).eq(flat);
  evaluation.counted += static_cast<std::uint64_t>(flat.numel());
  if (ignored_) {
    const at::Tensor counts = flat.ne(*ignored_);
    evaluation.counted -= static_cast<std::uint64_t>(flat.numel() - counts.sum().item<std::int64_t>());
    correct = correct.logical_and(counts);
  }
  evaluation.correct += static_cast<std::uint64_t>(correct.sum().item<std::int64_t>());
}

}  // namespace w5xde::torch_engine
