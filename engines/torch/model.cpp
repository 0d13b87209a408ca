#include "model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "blocks.h"
#include "loss.h"

namespace w5xde::torch_engine {

Status Model::freeze(std::span<const NamedTensor> values) {
  for (const NamedTensor& value : values) {
    const auto found = std::ranges::find(parameters_, value.name, &ModelTensor::name);
    if (found == parameters_.end())
      return invalid(fmt::format("there is no parameter '{}' to freeze in this model", value.name));
    const auto sizes = found->tensor.sizes();
    if (value.tensor.dtype() != DType::f32 || !std::ranges::equal(value.tensor.shape().dims(), sizes))
      return invalid(fmt::format("the frozen parameter '{}' is {} {} in its file and {} in the model",
                                 value.name, name_of(value.tensor.dtype()), value.tensor.shape().to_string(),
                                 c10::str(sizes)));
    // The file's bytes may be unaligned.
    std::vector<float> floats(value.tensor.shape().elements());
    std::memcpy(floats.data(), value.tensor.bytes().data(), floats.size() * sizeof(float));
    found->tensor.requires_grad_(false);
    copy_in(floats.data(), found->tensor);
    parameters_.erase(found);
  }
  return {};
}

at::Tensor Model::own_loss(Inputs, const at::Tensor&) {
  TORCH_CHECK(false, "this model has no loss of its own");
}

void Model::save(const std::filesystem::path&) const {
  TORCH_CHECK(false, "this model was not read from a file");
}

Result<MadeModel> make_model(ModelOptions& options, const std::filesystem::path& file, at::Device device) {
  std::optional<SafetensorsFile> frozen;
  if (!file.empty()) {
    auto opened = SafetensorsFile::open(file);
    if (opened.ok() && opened->contents().metadata.contains(kFrozenWord)) frozen = *std::move(opened);
  }
  MadeModel made{.model = nullptr, .scripted = !file.empty() && !frozen};
  W5XDE_CHECK(check_loss(options, made.scripted));
  if (options.loss == "auto" && !made.scripted) options.loss = usual_loss(options.classes);
  W5XDE_TRY(made.model,
            made.scripted ? load_scripted(options, file, device) : make_built_in(options, device));
  if (frozen) W5XDE_CHECK(made.model->freeze(frozen->contents().tensors));
  return made;
}

}  // namespace w5xde::torch_engine
