#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace w5xde::torch_engine {

enum class Loss { cross_entropy, mse, own };

// Whether options.loss, unless it is "auto", goes with the data and the model.
Status check_loss(const ModelOptions& options, bool scripted);
// What "auto" is for data with `classes` classes (0: no classes), where forward() does not need targets.
std::string usual_loss(std::uint32_t classes);
// Of a loss that check_loss() takes and that is not "auto".
Loss kind_of(std::string_view loss);

}  // namespace w5xde::torch_engine
