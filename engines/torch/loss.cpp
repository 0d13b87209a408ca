#include "loss.h"

#include <fmt/format.h>

namespace w5xde::torch_engine {

Status check_loss(const ModelOptions& options, bool scripted) {
  if (options.loss == "auto") return {};
  if (options.loss == "cross-entropy") {
    if (options.classes > 0) return {};
    return invalid("loss 'cross-entropy' needs data with classes; for other targets type --loss mse");
  }
  if (options.loss == "mse") {
    if (options.classes == 0) return {};
    return invalid("loss 'mse' is for targets that are no classes; for classes type --loss cross-entropy");
  }
  if (options.loss == "own") {
    if (scripted) return {};
    return invalid(
        fmt::format("'{}' has no loss of its own; type --loss cross-entropy or --loss mse", options.model));
  }
  return invalid(
      fmt::format("there is no loss '{}'; there are auto, cross-entropy, mse and own", options.loss));
}

Loss kind_of(std::string_view loss) {
  return loss == "own" ? Loss::own : loss == "mse" ? Loss::mse : Loss::cross_entropy;
}

std::string usual_loss(std::uint32_t classes) {
  return classes > 0 ? "cross-entropy" : "mse";
}

}  // namespace w5xde::torch_engine
