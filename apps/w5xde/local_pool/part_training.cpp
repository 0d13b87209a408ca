#include "local_pool/part_training.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <regex>

#include "base/errors.h"
#include "base/file.h"
#include "tensor/safetensors.h"

namespace w5xde {

namespace {

Result<std::regex> parse_pattern(const std::string& pattern) {
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& refused) {
    return invalid("--train: '{}' is no regular expression ({}); write it as '^head' or 'fc|norm'", pattern,
                   refused.what());
  }
}

Status write_frozen(const std::filesystem::path& file, const std::vector<std::string>& names,
                    const BlockLayout& parameters, std::span<const float> state) {
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names) {
    const BlockLayout::Entry& entry = *parameters.find(name);
    const auto floats = state.subspan(entry.offset, entry.shape.elements());
    tensors.push_back({name, TensorView(std::as_bytes(floats), DType::f32, entry.shape)});
  }
  return write_safetensors(file, tensors, {{"format", "pt"}, {kFrozenWord, "true"}});
}

// The values that both models have by the same name. False: `to` has others.
bool copy_by_name(const BlockLayout& from, std::span<const float> values, const BlockLayout& to,
                  std::span<float> copy) {
  for (const auto& entry : to.entries()) {
    const auto* source = from.find(entry.name);
    if (source == nullptr || source->shape != entry.shape) return false;
    std::ranges::copy(values.subspan(source->offset, source->shape.elements()), &copy[entry.offset]);
  }
  return true;
}

}  // namespace

Result<ModelWithState> make_with_state(const EngineLibrary& library, const ModelOptions& options,
                                       const std::filesystem::path& file) {
  ModelWithState made;
  W5XDE_TRY(made.engine, library.make(options, file));
  made.memory = AlignedBuffer(made.engine->description().floats() * sizeof(float));
  std::memset(made.memory.data(), 0, made.memory.capacity());
  return made;
}

Status check_pattern(const std::string& pattern) {
  W5XDE_CHECK(parse_pattern(pattern));
  return {};
}

Result<std::vector<std::string>> frozen_names(const std::string& pattern, const BlockLayout& parameters) {
  W5XDE_TRY(const std::regex trained, parse_pattern(pattern));
  std::vector<std::string> names, frozen;
  for (const auto& entry : parameters.entries()) {
    names.push_back(entry.name);
    if (!std::regex_search(entry.name, trained)) frozen.push_back(entry.name);
  }
  if (frozen.size() < names.size()) return frozen;
  return invalid("--train '{}' finds none of the model's parameters: {}", pattern, fmt::join(names, ", "));
}

Status train_part(const EngineLibrary& library, const ModelOptions& options, const PartTraining& part,
                  ModelWithState& model) {
  const ModelDescription& all = model.engine->description();
  W5XDE_TRY(const std::vector<std::string> frozen, frozen_names(part.pattern, *all.parameters));
  if (frozen.empty()) return {};
  W5XDE_CHECK(write_frozen(part.frozen_file, frozen, *all.parameters, model.state()));
  const bool named = part.model_file.empty();
  if (!named) {
    std::filesystem::path half = part.model_file;
    half += ".tmp";
    W5XDE_CHECK(model.engine->save_model(model.state(), half, frozen));
    W5XDE_CHECK(real_disk().rename(half, part.model_file));
  }
  W5XDE_TRY(ModelWithState made,
            make_with_state(library, options, named ? part.frozen_file : part.model_file));
  const ModelDescription& trained = made.engine->description();
  const std::span<const float> from = model.state();
  const std::span<float> to = made.state();
  const std::uint64_t buffers_from = all.parameters->floats(), buffers_to = trained.parameters->floats();
  const bool fits =
      trained.parameters->entries().size() + frozen.size() == all.parameters->entries().size() &&
      trained.buffers->entries().size() == all.buffers->entries().size() &&
      copy_by_name(*all.parameters, from, *trained.parameters, to) &&
      copy_by_name(*all.buffers, from.subspan(buffers_from), *trained.buffers, to.subspan(buffers_to));
  if (!fits) return invalid("--train: the engine {} cannot train a part of a model", made.engine->name());
  model = std::move(made);
  return {};
}

}  // namespace w5xde
