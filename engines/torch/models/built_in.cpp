#include "models/built_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace w5xde::torch_engine {

namespace {

struct Family {
  std::string_view name;
  std::string_view usage;
  Result<std::unique_ptr<Model>> (*make)(const BuiltIn&);
};

constexpr std::array<Family, 7> kFamilies = {{
    {"mlp", "mlp:INPUTS,HIDDEN,…,OUTPUTS (mlp:784,128,10)", make_mlp},
    {"lenet", "lenet, lenet:dropout=0.25", make_lenet},
    {"resnet-small", "resnet-small", make_resnet_small},
    {"resnet18", "resnet18", make_resnet18},
    {"vit", "vit:PATCH,LAYERS,HEADS,WIDTH (vit:4,6,4,128)", make_vit},
    {"gpt", "gpt:LAYERS,HEADS,WIDTH,CONTEXT (gpt:4,4,128,128)", make_gpt},
    {"lstm", "lstm:LAYERS,WIDTH (lstm:2,256)", make_lstm},
}};

// "dropout=0.1", a rate from 0 to less than 1.
std::optional<double> parse_dropout(std::string_view text) {
  constexpr std::string_view kDropout = "dropout=";
  if (!text.starts_with(kDropout)) return std::nullopt;
  text.remove_prefix(kDropout.size());
  double rate = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (error != std::errc() || end != text.data() + text.size() || !(rate >= 0 && rate < 1))
    return std::nullopt;
  return rate;
}

}  // namespace

std::optional<std::int64_t> parse_size(std::string_view text) {
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return size >= 1 && size <= kSizeMax ? std::optional(size) : std::nullopt;
}

Result<Settings> read_settings(const BuiltIn& asked, std::size_t sizes, std::string_view instead) {
  const Error misread =
      invalid(fmt::format("'{}' is not understood; type {}, with a rate of dropout from 0 to less than 1 if "
                          "there is to be any: {}{}dropout=0.25",
                          asked.options.model, instead, instead, sizes > 0 ? "," : ":"));
  Settings settings;
  bool dropout_given = false;
  for (std::string_view rest = asked.settings; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, comma);
    if (comma + 1 == rest.size() || dropout_given) return misread;
    if (settings.sizes.size() < sizes) {
      const auto size = parse_size(word);
      if (!size) return misread;
      settings.sizes.push_back(*size);
    } else {
      const auto rate = parse_dropout(word);
      if (!rate) return misread;
      settings.dropout = *rate;
      dropout_given = true;
    }
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (settings.sizes.size() != sizes) return misread;
  return settings;
}

Status check_floats(const ModelOptions& options, double floats) {
  const std::uint64_t floats_max = std::min(kFloatsMax, options.floats_max);
  if (floats <= static_cast<double>(floats_max)) return {};
  return overloaded(
      fmt::format("'{}' has {:.0f} parameters; {} are the most here", options.model, floats, floats_max));
}

Status check_numbers(const ModelOptions& options) {
  if (options.inputs.size() != 1)
    return invalid(
        fmt::format("'{}' takes one input, and these samples have {}", options.model, options.inputs.size()));
  const SampleField& input = options.inputs[0];
  if (input.kind() == SampleField::Kind::number) return {};
  return invalid(
      fmt::format("'{}' takes numbers, and '{}' is ids or flags ({}); store it as f32, or as u8 pixels",
                  options.model, input.name, name_of(input.dtype)));
}

Result<std::int64_t> outputs_of(const ModelOptions& options) {
  if (options.classes == 0) return static_cast<std::int64_t>(options.targets.shape.elements());
  if (options.targets.shape.rank() == 0) return std::int64_t{options.classes};
  return invalid(
      fmt::format("'{}' gives one class a sample, and the targets of a sample are {}{}", options.model,
                  options.targets.shape.to_string(),
                  options.targets.shape.elements() == 1 ? "; save them with array.reshape(-1)" : ""));
}

Result<std::int64_t> tokens_of(const ModelOptions& options) {
  const bool ids = options.inputs.size() == 1 && options.inputs[0].kind() == SampleField::Kind::whole &&
                   options.inputs[0].shape.rank() == 1 && options.inputs[0].shape[0] > 0;
  if (ids && options.classes > 0 && options.targets.shape == options.inputs[0].shape)
    return options.inputs[0].shape[0];
  return invalid(fmt::format(
      "'{}' is a language model: it takes --data text:FILE, --data tokens:FILE, or one input of ids "
      "with a class for each",
      options.model));
}

Result<std::unique_ptr<Model>> make_built_in(const ModelOptions& options, at::Device device) {
  const std::string_view text = options.model;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view settings = text.substr(std::min(colon + 1, text.size()));
  const auto family = std::ranges::find(kFamilies, text.substr(0, colon), &Family::name);
  if (family != kFamilies.end()) return family->make({options, settings, device});
  std::string known;
  for (const Family& one : kFamilies) known += fmt::format("{}, ", one.usage);
  return invalid(fmt::format("there is no model '{}'; there are {}or a TorchScript file", text, known));
}

}  // namespace w5xde::torch_engine
