#include "data/dataset.h"

#include <array>
#include <string>
#include <utility>

#include "base/errors.h"
#include "data/array_dataset.h"
#include "data/generated.h"
#include "data/idx.h"
#include "data/npy.h"
#include "tensor/safetensors.h"

namespace w5xde {

namespace {

Result<Array> take_tensor(const std::shared_ptr<const SafetensorsFile>& file, std::string_view path,
                          std::string_view name) {
  const TensorView* tensor = file->contents().find(name);
  if (tensor == nullptr)
    return invalid(
        "{} has no tensor '{}'; a data set is a file with tensors 'inputs' and "
        "'targets', whose first dimension counts samples",
        path, name);
  return Array{fmt::format("'{}' of {}", name, path), *tensor, file};
}

Result<SharedDataset> open_safetensors(std::string_view path) {
  W5XDE_TRY(SafetensorsFile opened, SafetensorsFile::open(path));
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  W5XDE_TRY(Array inputs, take_tensor(file, path, "inputs"));
  W5XDE_TRY(Array targets, take_tensor(file, path, "targets"));
  return make_array_dataset(std::move(inputs), std::move(targets));
}

// What the part of a spec behind its colon opens.
struct Request {
  std::string_view place;
  Split split;
  std::uint64_t seed;
};

struct Source {
  std::string_view name;
  std::string_view usage;
  bool takes_place;
  bool has_test_split;
  Result<SharedDataset> (*open)(const Request&);
};

constexpr std::array<Source, 5> kSources = {{
    {"synthetic", "synthetic", false, true, [](const Request& r) { return make_synthetic(r.split, r.seed); }},
    {"idx", "idx:FOLDER or idx:IMAGES,LABELS", true, true,
     [](const Request& r) { return open_idx(r.place, r.split); }},
    {"npy", "npy:INPUTS,TARGETS", true, false, [](const Request& r) { return open_npy(r.place); }},
    {"safetensors", "safetensors:FILE", true, false,
     [](const Request& r) { return open_safetensors(r.place); }},
    {"random", "random:FEATURES,CLASSES[,SAMPLES]", true, false,
     [](const Request& r) { return make_random(r.place, r.seed); }},
}};

Error unknown_source(std::string_view spec) {
  std::string known;
  for (const Source& source : kSources) known += fmt::format("\n  {}", source.usage);
  return invalid("there is no data set '{}'. Known are:{}\nfor example idx:/usr/share/datasets/fashion-mnist",
                 spec, known);
}

Result<SharedDataset> open_from(const Source& source, const Request& request) {
  if (source.takes_place == request.place.empty()) return invalid("it is written {}", source.usage);
  if (request.split == Split::test && !source.has_test_split) return SharedDataset();
  return source.open(request);
}

}  // namespace

Result<std::shared_ptr<const Dataset>> open_dataset(std::string_view spec, Split split, std::uint64_t seed) {
  const auto colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string_view place = colon == std::string_view::npos ? "" : spec.substr(colon + 1);
  for (const Source& source : kSources) {
    if (source.name != name) continue;
    auto opened = open_from(source, {place, split, seed});
    if (!opened) return std::move(opened).error().within(fmt::format("data set '{}'", spec));
    return opened;
  }
  return unknown_source(spec);
}

}  // namespace w5xde
