#include "run/choices.h"

#include <fmt/format.h>

#include <algorithm>

namespace w5xde {

namespace {

constexpr std::string_view kAutomatic = "auto", kSame = "same";

template <class Choice>
struct Named {
  Choice choice;
  std::string_view name;
};
constexpr Named<Loss> kLosses[] = {{Loss::automatic, kAutomatic},
                                   {Loss::cross_entropy, "cross-entropy"},
                                   {Loss::mse, "mse"},
                                   {Loss::own, "own"}};
constexpr Named<Serialization> kSerializations[] = {{Serialization::direct, "direct"},
                                                    {Serialization::generic, "generic"}};
constexpr Named<SampleCaching> kSampleCaches[] = {
    {SampleCaching::automatic, kAutomatic}, {SampleCaching::on, "on"}, {SampleCaching::off, "off"}};
constexpr Named<WhoWorks> kWhoWorks[] = {{WhoWorks::fastest, kAutomatic}, {WhoWorks::all, "all"}};
constexpr Named<BatchPolicy> kBatchPolicies[] = {{BatchPolicy::fixed, "fixed"},
                                                 {BatchPolicy::grows, kAutomatic}};
constexpr Named<RateScaling> kRateScalings[] = {{RateScaling::by_optimizer, kAutomatic},
                                                {RateScaling::linear, "linear"},
                                                {RateScaling::sqrt, "sqrt"},
                                                {RateScaling::none, "none"}};

template <class Choice, std::size_t n>
Result<Choice> find(const Named<Choice> (&all)[n], std::string_view text) {
  const auto found = std::ranges::find(all, text, &Named<Choice>::name);
  if (found != std::end(all)) return found->choice;
  std::string names;
  for (std::size_t i = 0; i < n; ++i)
    names += fmt::format("{}{}", i == 0 ? "" : i + 1 == n ? " or " : ", ", all[i].name);
  return invalid(fmt::format("'{}' is not a choice; use {}", text, names));
}

template <class Choice, std::size_t n>
std::string_view name_in(const Named<Choice> (&all)[n], Choice choice) {
  return std::ranges::find(all, choice, &Named<Choice>::choice)->name;
}

template <class Codec>
Result<Choice<Codec>> codec_choice(std::string_view text, Result<Codec> (*parse)(std::string_view)) {
  if (text == kAutomatic) return Choice<Codec>{.automatic = true};
  W5XDE_TRY(const Codec codec, parse(text));
  return Choice<Codec>{.codec = codec};
}

}  // namespace

Result<Loss> parse_loss(std::string_view text) {
  return find(kLosses, text);
}

Result<Serialization> parse_serialization(std::string_view text) {
  return find(kSerializations, text);
}

Result<SampleCaching> parse_sample_cache(std::string_view text) {
  return find(kSampleCaches, text);
}

Result<WhoWorks> parse_who_works(std::string_view text) {
  return find(kWhoWorks, text);
}

Result<BatchPolicy> parse_batch_policy(std::string_view text) {
  return find(kBatchPolicies, text);
}

Result<RateScaling> parse_rate_scaling(std::string_view text) {
  return find(kRateScalings, text);
}

Result<LosslessChoice> parse_lossless_choice(std::string_view text) {
  return codec_choice(text, parse_lossless);
}

Result<std::optional<LosslessChoice>> parse_lossless_or_same(std::string_view text) {
  if (text == kSame) return std::optional<LosslessChoice>();
  W5XDE_TRY(const LosslessChoice choice, parse_lossless_choice(text));
  return std::optional(choice);
}

Result<GradientChoice> parse_gradient_choice(std::string_view text) {
  return codec_choice(text, parse_gradient_codec);
}

std::string_view name_of(Loss loss) {
  return name_in(kLosses, loss);
}

std::string_view name_of(Serialization serialization) {
  return name_in(kSerializations, serialization);
}

std::string_view name_of(SampleCaching caching) {
  return name_in(kSampleCaches, caching);
}

std::string_view name_of(WhoWorks who) {
  return name_in(kWhoWorks, who);
}

std::string_view name_of(BatchPolicy policy) {
  return name_in(kBatchPolicies, policy);
}

std::string_view name_of(RateScaling scaling) {
  return name_in(kRateScalings, scaling);
}

std::string to_string(const LosslessChoice& choice) {
  return choice.automatic ? std::string(kAutomatic) : to_string(choice.codec);
}

std::string to_string(const std::optional<LosslessChoice>& choice) {
  return choice ? to_string(*choice) : std::string(kSame);
}

std::string to_string(const GradientChoice& choice) {
  return choice.automatic ? std::string(kAutomatic) : to_string(choice.codec);
}

}  // namespace w5xde
