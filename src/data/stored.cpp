#include "data/stored.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "data/npy.h"
#include "tensor/safetensors.h"

namespace w5xde {

namespace {

Result<Array> open_npy_array(const std::filesystem::path& path) {
  W5XDE_TRY(MappedFile file, MappedFile::open(path));
  auto tensor = parse_npy(file.bytes());
  if (!tensor) return std::move(tensor).error().within(path.string());
  return Array{path.string(), *tensor, std::make_shared<MappedFile>(std::move(file))};
}

Result<Array> take_tensor(const std::shared_ptr<const SafetensorsFile>& file, std::string_view path,
                          std::string_view name) {
  const TensorView* tensor = file->contents().find(name);
  if (tensor == nullptr) {
    return invalid(
        fmt::format("{} has no tensor '{}'; a data set is a file with tensors 'inputs' and "
                    "'targets', whose first dimension counts samples",
                    path, name));
  }
  return Array{fmt::format("'{}' of {}", name, path), *tensor, file};
}

}  // namespace

Result<SharedDataset> open_npy(std::string_view place) {
  const auto comma = place.find(',');
  if (comma == std::string_view::npos || place.find(',', comma + 1) != std::string_view::npos) {
    return invalid("npy: takes two files with one comma between them: npy:inputs.npy,targets.npy");
  }
  W5XDE_TRY(Array inputs, open_npy_array(place.substr(0, comma)));
  W5XDE_TRY(Array targets, open_npy_array(place.substr(comma + 1)));
  return make_array_dataset(std::move(inputs), std::move(targets));
}

Result<SharedDataset> open_safetensors(std::string_view place) {
  W5XDE_TRY(SafetensorsFile opened, SafetensorsFile::open(place));
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  W5XDE_TRY(Array inputs, take_tensor(file, place, "inputs"));
  W5XDE_TRY(Array targets, take_tensor(file, place, "targets"));
  return make_array_dataset(std::move(inputs), std::move(targets));
}

}  // namespace w5xde
