#include "data/dataset.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "data/array_dataset.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/generated.h"
#include "data/idx.h"
#include "data/images.h"
#include "data/npy.h"
#include "data/text.h"
#include "data/tokens.h"
#include "tensor/safetensors.h"

namespace w5xde {

namespace {

Result<SharedDataset> open_safetensors(std::string_view path, std::optional<std::int64_t> ignored) {
  W5XDE_TRY(SafetensorsFile opened, SafetensorsFile::open(path));
  const auto file = std::make_shared<const SafetensorsFile>(std::move(opened));
  std::vector<Array> inputs;
  std::optional<Array> targets;
  for (const NamedTensor& named : file->contents().tensors) {
    Array array{fmt::format("'{}' of {}", named.name, path), named.tensor, file, named.name};
    if (named.name == "targets") {
      targets = std::move(array);
    } else {
      inputs.push_back(std::move(array));
    }
  }
  if (!targets || inputs.empty())
    return invalid(
        "{} has {}; a data set is a file with a tensor 'targets' and others, which are inputs. The first "
        "dimension of each counts samples",
        path, targets ? "no tensor but 'targets'" : "no tensor 'targets'");
  return make_array_dataset(std::move(inputs), *std::move(targets), {.ignored = ignored});
}

// What the part of a spec behind its colon opens.
struct Request {
  std::string_view place;
  Split split;
  std::uint64_t seed;
  std::optional<std::int64_t> ignored;
  const TellProgress& progress;
};

struct Source {
  std::string_view name;
  std::string_view usage;
  bool takes_place;
  enum class Test { none, own, end_of_file } test_split;
  Result<SharedDataset> (*open)(const Request&);
};

constexpr std::array<Source, 10> kSources = {{
    {"synthetic", "synthetic", false, Source::Test::own,
     [](const Request& r) { return make_synthetic(r.split, r.seed); }},
    {"idx", "idx:FOLDER or idx:IMAGES,LABELS", true, Source::Test::own,
     [](const Request& r) { return open_idx(r.place, r.split); }},
    {"cifar10", "cifar10:FOLDER", true, Source::Test::own,
     [](const Request& r) { return open_cifar10(r.place, r.split); }},
    {"csv", "csv:FILE?label=COLUMN", true, Source::Test::none,
     [](const Request& r) { return open_csv(r.place, r.progress); }},
    {"images", "images:FOLDER[,size=N]", true, Source::Test::own,
     [](const Request& r) { return open_images(r.place, r.split, r.progress); }},
    {"npy", "npy:INPUTS[,MORE],TARGETS", true, Source::Test::none,
     [](const Request& r) { return open_npy(r.place, r.ignored); }},
    {"safetensors", "safetensors:FILE", true, Source::Test::none,
     [](const Request& r) { return open_safetensors(r.place, r.ignored); }},
    {"text", "text:FILE[,context=N]", true, Source::Test::end_of_file,
     [](const Request& r) { return open_text(r.place, r.split); }},
    {"tokens", "tokens:FILE.npy[,context=N] or tokens:FILE.bin:u16[,context=N]", true,
     Source::Test::end_of_file, [](const Request& r) { return open_tokens(r.place, r.split); }},
    {"random", "random:FEATURES,CLASSES[,SAMPLES]", true, Source::Test::none,
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
  if (request.split == Split::test && source.test_split == Source::Test::none) return SharedDataset();
  if (request.split != Split::evaluation || source.test_split == Source::Test::end_of_file)
    return source.open(request);
  Request part = request;
  part.split = Split::test;
  W5XDE_TRY(SharedDataset test, open_from(source, part));
  if (test) return test;
  part.split = Split::train;
  return source.open(part);
}

}  // namespace

Result<std::shared_ptr<const Dataset>> open_dataset(std::string_view spec, Split split, std::uint64_t seed,
                                                    std::optional<std::int64_t> ignored,
                                                    const TellProgress& progress) {
  const auto colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string_view place = colon == std::string_view::npos ? "" : spec.substr(colon + 1);
  for (const Source& source : kSources) {
    if (source.name != name) continue;
    auto opened = open_from(source, {place, split, seed, ignored, progress});
    if (!opened) return std::move(opened).error().within(fmt::format("data set '{}'", spec));
    return opened;
  }
  return unknown_source(spec);
}

Status check_alike(const Dataset& training, const Dataset& evaluation) {
  const auto differ = [](const Dataset::Field& one, const Dataset::Field& other) {
    return !(one.shape == other.shape) || one.kind() != other.kind();
  };
  const auto describe = [](const Dataset::Field& field) {
    return fmt::format("{} {}", name_of(field.dtype), field.shape.to_string());
  };
  const auto there = training.legend(), here = evaluation.legend();
  if (there.size() != here.size()) {
    const auto& [longer, which] =
        there.size() > here.size() ? std::pair(there, "training") : std::pair(here, "evaluation");
    return invalid(
        "the numbers stand for words in {} samples alone: '{}'. Use data of one kind, with the same columns",
        which, longer[std::min(there.size(), here.size())]);
  }
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (there[i] != here[i])
      return invalid(
          "the numbers stand for other words than in training: there '{}', here '{}'. Evaluate on samples "
          "that have all of these words in this order, or hold some out with --split",
          there[i], here[i]);
  }
  if (training.inputs().size() != evaluation.inputs().size())
    return invalid("evaluation samples have {} inputs, training samples {}; use data of one kind",
                   evaluation.inputs().size(), training.inputs().size());
  for (std::size_t i = 0; i <= training.inputs().size(); ++i) {
    const bool last = i == training.inputs().size();
    const Dataset::Field& trained = last ? training.targets() : training.inputs()[i];
    const Dataset::Field& evaluated = last ? evaluation.targets() : evaluation.inputs()[i];
    if (differ(trained, evaluated))
      return invalid("'{}' is {} in the evaluation samples and {} in training samples; use data of one kind",
                     evaluated.name, describe(evaluated), describe(trained));
    if (trained.ids > 0 && evaluated.ids > trained.ids)
      return invalid(
          "'{}' has ids up to {} in the evaluation samples and up to {} in training samples; the model is "
          "made "
          "for those",
          evaluated.name, evaluated.ids - 1, trained.ids - 1);
  }
  if (evaluation.classes() > training.classes())
    return invalid("evaluation samples have {} classes, training samples {}; the model is made for those",
                   evaluation.classes(), training.classes());
  return {};
}

}  // namespace w5xde
