// What a setting may be, as types, and how the command line, run.toml and --json spell it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "codec/gradient.h"
#include "codec/lossless.h"
#include "learn/global_batch.h"
#include "w5xde/dtype.h"
#include "w5xde/result.h"
#include "w5xde/sample_preparation.h"

namespace w5xde {

enum class Loss : std::uint8_t {
  automatic,  // what the model and the data ask for (ModelOptions::loss)
  cross_entropy,
  bce,  // binary cross-entropy of outputs that are logits
  mse,
  own,  // a TorchScript file's forward(inputs, targets) gives it
};

enum class Serialization : std::uint8_t {
  direct,   // tensors travel as their own bytes
  generic,  // number by number
};

// Whether nodes keep the samples that they were sent, so that each sample crosses their link once.
enum class SampleCaching : std::uint8_t { automatic, on, off };  // automatic: on behind slow links

// Whether nodes of the coordinator's machine share memory with it.
enum class MemorySharing : std::uint8_t { automatic, off };  // automatic: where the model is large

// Who takes part in a step.
enum class WhoWorks : std::uint8_t {
  fastest,  // as many nodes as make a step faster
  all,
};

// A codec that was named, or automatic: the run measures and chooses.
template <class Codec>
struct Choice {
  Codec codec = {};  // none where the choice is automatic: a run begins with that
  bool automatic = false;

  bool operator==(const Choice&) const = default;
};
using LosslessChoice = Choice<LosslessCodec>;
using GradientChoice = Choice<GradientCodec>;

// The names of an enum's values. A new choice needs a line here, and nothing else.
template <class Enum>
struct Named {
  Enum value;
  std::string_view name;
};
template <class Enum>
inline constexpr std::nullptr_t kNames = nullptr;
template <>
inline constexpr Named<Loss> kNames<Loss>[] = {{Loss::automatic, "auto"},
                                               {Loss::cross_entropy, "cross-entropy"},
                                               {Loss::bce, "bce"},
                                               {Loss::mse, "mse"},
                                               {Loss::own, "own"}};
template <>
inline constexpr Named<DType> kNames<DType>[] = {{DType::f32, "f32"}, {DType::bf16, "bf16"}};
template <>
inline constexpr Named<Serialization> kNames<Serialization>[] = {{Serialization::direct, "direct"},
                                                                 {Serialization::generic, "generic"}};
template <>
inline constexpr Named<SampleCaching> kNames<SampleCaching>[] = {
    {SampleCaching::automatic, "auto"}, {SampleCaching::on, "on"}, {SampleCaching::off, "off"}};
template <>
inline constexpr Named<MemorySharing> kNames<MemorySharing>[] = {{MemorySharing::automatic, "auto"},
                                                                 {MemorySharing::off, "off"}};
template <>
inline constexpr Named<WhoWorks> kNames<WhoWorks>[] = {{WhoWorks::fastest, "auto"}, {WhoWorks::all, "all"}};
template <>
inline constexpr Named<BatchPolicy> kNames<BatchPolicy>[] = {{BatchPolicy::fixed, "fixed"},
                                                             {BatchPolicy::grows, "auto"}};
template <>
inline constexpr Named<RateScaling> kNames<RateScaling>[] = {{RateScaling::by_optimizer, "auto"},
                                                             {RateScaling::linear, "linear"},
                                                             {RateScaling::sqrt, "sqrt"},
                                                             {RateScaling::none, "none"}};

// "'pickle' is not a choice; use direct or generic"
Error no_choice(std::string_view text, std::span<const std::string_view> names);

template <class Enum>
Result<Enum> parse_choice(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& [value, name] : kNames<Enum>) {
    if (name == text) return value;
    names.push_back(name);
  }
  return no_choice(text, names);
}

template <class Enum>
requires std::is_array_v<decltype(kNames<Enum>)> std::string_view name_of(Enum value) {
  return std::ranges::find(kNames<Enum>, value, &Named<Enum>::value)->name;
}

Result<LosslessChoice> parse_lossless_choice(std::string_view text);
// nullopt: the same as in the other direction.
Result<std::optional<LosslessChoice>> parse_lossless_or_same(std::string_view text);
Result<GradientChoice> parse_gradient_choice(std::string_view text);

// What the functions above read back as the same choice.
template <class Codec>
std::string to_string(const Choice<Codec>& choice) {
  return choice.automatic ? "auto" : to_string(choice.codec);
}
std::string to_string(const std::optional<LosslessChoice>& choice);

// What --normalize and --augment say of the preparation of samples.

// "0.5,0.4,0.3/0.2,0.2,0.2", or "none": sets mean and deviation.
Status parse_normalize(std::string_view text, SamplePreparation& preparation);
std::string normalize_of(const SamplePreparation& preparation);
// "crop:4,flip", one of the two, or "none": sets the others.
Status parse_augment(std::string_view text, SamplePreparation& preparation);
std::string augment_of(const SamplePreparation& preparation);

// A class, or "none".
Result<std::optional<std::int64_t>> parse_ignore_index(std::string_view text);
std::string to_string(const std::optional<std::int64_t>& ignored);

}  // namespace w5xde
