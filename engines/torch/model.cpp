#include "model.h"

namespace w5xde::torch_engine {

at::Tensor Model::own_loss(Inputs, const at::Tensor&) {
  TORCH_CHECK(false, "this model has no loss of its own");
}

void Model::save(const std::filesystem::path&) const {
  TORCH_CHECK(false, "this model was not read from a file");
}

}  // namespace w5xde::torch_engine
