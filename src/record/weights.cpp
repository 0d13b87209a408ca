#include "record/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "record/run_folder.h"
#include "tensor/half.h"

namespace w5xde {

namespace {

// Of names that do not fit, the first ones.
constexpr std::size_t kNamesShown = 6;

template <class From, class Convert>
void convert_all(Bytes from, std::span<float> to, const Convert& convert) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = convert(load<From>(from.data() + i * sizeof(From)));
}

// As many as `to` has room for. False: weights are not kept as numbers of this type.
bool read_floats(const TensorView& from, std::span<float> to) {
  const Bytes bytes = from.bytes();
  const auto cast = [](auto value) { return static_cast<float>(value); };
  switch (from.dtype()) {
    case DType::f32:
      std::ranges::copy(bytes, std::as_writable_bytes(to).begin());
      return true;
    case DType::f64:
      convert_all<double>(bytes, to, cast);
      return true;
    case DType::f16:
      convert_all<std::uint16_t>(bytes, to, f32_from_f16);
      return true;
    case DType::bf16:
      convert_all<std::uint16_t>(bytes, to, f32_from_bf16);
      return true;
    case DType::i64:  // BatchNorm's counter
      convert_all<std::int64_t>(bytes, to, cast);
      return true;
    default:
      return false;
  }
}

Result<CheckpointFile> best_or_newest(const RunFolder& folder) {
  if (folder.disk().exists(folder.best_checkpoint())) return CheckpointFile::open(folder.best_checkpoint());
  W5XDE_TRY(auto newest, folder.newest());
  if (!newest) return invalid("{} has no checkpoint yet", folder.path().string());
  return std::move(*newest);
}

// Of a checkpoint that lies in its run's folder.
std::filesystem::path frozen_beside(const std::filesystem::path& checkpoint) {
  return std::filesystem::absolute(checkpoint).parent_path().parent_path() / RunFolder::kFrozenFile;
}

Result<Weights> of_checkpoint(const Result<CheckpointFile>& checkpoint, const std::filesystem::path& frozen,
                              const std::string& source) {
  if (!checkpoint.ok()) return checkpoint.error();
  W5XDE_TRY(Weights weights, weights_of(*checkpoint, frozen));
  weights.source = source;
  return weights;
}

// What torch.save and TorchScript write: a zip archive.
Status refuse_archive(const std::filesystem::path& source) {
  constexpr std::string_view kZip = "PK\x03\x04";
  W5XDE_TRY(const MappedFile file, MappedFile::open(source));
  if (!text_of(file.bytes()).starts_with(kZip)) return {};
  return invalid(
      "{} is what torch.save writes, and weights come from safetensors files: "
      "safetensors.torch.save_file(net.state_dict(), \"net.safetensors\"). A TorchScript model needs no file "
      "of weights: it begins with those that it has, so call net.load_state_dict(torch.load(\"{}\")) before "
      "torch.jit.script(net).save(\"net.pt\")",
      source.string(), source.filename().string());
}

// What does not fit, in words.
class Misfits {
 public:
  void add(std::string what) { all_.push_back(std::move(what)); }
  Status status(const std::string& source) const {
    if (all_.empty()) return {};
    const std::span<const std::string> shown(all_.data(), std::min(all_.size(), kNamesShown));
    const std::string more =
        shown.size() < all_.size() ? fmt::format("; and {} more", all_.size() - shown.size()) : "";
    return invalid(
        "the weights of {} do not fit the model: {}{}. They have to be those of the same model by the names "
        "of its state dict, as `w5xde export` and safetensors.torch.save_file(net.state_dict(), "
        "\"net.safetensors\")"
        " write them; frozen and tied parameters are left out",
        source, fmt::join(shown, "; "), more);
  }

 private:
  std::vector<std::string> all_;
};

}  // namespace

Result<Weights> weights_of(const CheckpointFile& checkpoint, const std::filesystem::path& frozen) {
  const auto memory = std::make_shared<std::vector<std::vector<float>>>();
  Weights weights{.source = fmt::format("step {}", checkpoint.info().step), .tensors = {}, .memory = memory};
  for (const char* group : {"parameters", "buffers"}) {
    const auto layout = checkpoint.layout_of(group);
    if (!layout) continue;
    std::vector<float>& values = memory->emplace_back(layout->floats());
    W5XDE_CHECK(checkpoint.read(group, *layout, values));
    for (const auto& entry : layout->entries()) {
      const auto floats = std::span<const float>(values).subspan(entry.offset, entry.shape.elements());
      weights.tensors.push_back({entry.name, TensorView(std::as_bytes(floats), DType::f32, entry.shape)});
    }
  }
  std::error_code ignored;
  if (!std::filesystem::exists(frozen, ignored)) return weights;
  W5XDE_TRY(SafetensorsFile opened, SafetensorsFile::open(frozen));
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  const auto& tensors = file->contents().tensors;
  weights.tensors.insert(weights.tensors.end(), tensors.begin(), tensors.end());
  weights.memory = std::make_shared<std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
      std::move(weights.memory), file);
  return weights;
}

Result<Weights> open_weights(const std::filesystem::path& source) {
  std::error_code ignored;
  if (std::filesystem::is_directory(source, ignored)) {
    W5XDE_TRY(const RunFolder folder, RunFolder::look(source));
    return of_checkpoint(best_or_newest(folder), folder.frozen_file(), source.string());
  }
  W5XDE_CHECK(refuse_archive(source));
  W5XDE_TRY(SafetensorsFile opened, SafetensorsFile::open(source));
  if (is_checkpoint(opened.contents()))
    return of_checkpoint(CheckpointFile::open(source), frozen_beside(source), source.string());
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  return Weights{source.string(), file->contents().tensors, file};
}

Status take_weights(const Weights& weights, const BlockLayout& parameters, const BlockLayout& buffers,
                    std::span<float> state) {
  Misfits misfits;
  std::map<std::string_view, const TensorView*> left;
  for (const NamedTensor& named : weights.tensors) left.emplace(named.name, &named.tensor);
  std::vector<float> taken(state.begin(), state.end());
  std::uint64_t first = 0;
  for (const BlockLayout* layout : {&parameters, &buffers}) {
    for (const auto& entry : layout->entries()) {
      const auto found = left.extract(entry.name);
      // A buffer may be a mask, with infinities.
      const auto is_sound = [&](float value) {
        return std::isfinite(value) || (layout == &buffers && std::isinf(value));
      };
      const std::span<float> to = std::span(taken).subspan(first + entry.offset, entry.shape.elements());
      if (found.empty()) {
        misfits.add(fmt::format("'{}' is missing", entry.name));
      } else if (const TensorView& from = *found.mapped(); from.shape() != entry.shape) {
        misfits.add(fmt::format("'{}' is {} there and {} in the model", entry.name, from.shape().to_string(),
                                entry.shape.to_string()));
      } else if (!read_floats(from, to)) {
        misfits.add(fmt::format("'{}' is of {}, and weights are floats", entry.name, name_of(from.dtype())));
      } else if (!std::ranges::all_of(to, is_sound)) {
        misfits.add(fmt::format("'{}' has NaN or infinity", entry.name));
      }
    }
    first += layout->floats();
  }
  for (const auto& [name, tensor] : left) {
    if (!is_whole_number(tensor->dtype()) && tensor->dtype() != DType::boolean)
      misfits.add(fmt::format("'{}' is not among what the model trains", name));
  }
  W5XDE_CHECK(misfits.status(weights.source));
  std::ranges::copy(taken, state.begin());
  return {};
}

}  // namespace w5xde
