#include "data/dataset.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "data/array_dataset.h"
#include "data/generated.h"
#include "data/idx.h"
#include "data/stored.h"

namespace w5xde {

namespace {

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
  return invalid(fmt::format(
      "there is no data set '{}'. Known are:{}\nfor example idx:/usr/share/datasets/fashion-mnist", spec,
      known));
}

Result<SharedDataset> open_from(const Source& source, const Request& request) {
  if (source.takes_place == request.place.empty()) {
    return invalid(fmt::format("it is written {}", source.usage));
  }
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
