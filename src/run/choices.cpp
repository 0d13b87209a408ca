#include "run/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/errors.h"

namespace w5xde {

namespace {

template <class Codec>
Result<Choice<Codec>> codec_choice(std::string_view text, Result<Codec> (*parse)(std::string_view)) {
  if (text == "auto") return Choice<Codec>{.automatic = true};
  W5XDE_TRY(const Codec codec, parse(text));
  return Choice<Codec>{.codec = codec};
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

// The part up to the next comma, which is taken off.
std::string_view next_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(','));
  rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  return word;
}

std::optional<std::vector<float>> read_numbers(std::string_view text) {
  std::vector<float> numbers;
  if (text.empty() || text.ends_with(',')) return std::nullopt;
  while (!text.empty()) {
    if (!read_number(next_word(text), numbers.emplace_back()) || !std::isfinite(numbers.back()))
      return std::nullopt;
  }
  return numbers;
}

}  // namespace

Status parse_normalize(std::string_view text, SamplePreparation& preparation) {
  preparation.mean.clear();
  preparation.deviation.clear();
  if (text == "none") return {};
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    auto mean = read_numbers(text.substr(0, slash)), deviation = read_numbers(text.substr(slash + 1));
    if (mean && deviation && mean->size() == deviation->size() &&
        std::ranges::all_of(*deviation, [](float number) { return number > 0; })) {
      preparation.mean = *std::move(mean);
      preparation.deviation = *std::move(deviation);
      return {};
    }
  }
  return invalid(
      "'{}': use MEAN,…/DEVIATION,…, one of each for all channels or one for every channel, deviations more "
      "than 0, as 0.2860/0.3530; or auto, or none",
      text);
}

std::string normalize_of(const SamplePreparation& preparation) {
  if (!preparation.normalizes()) return "none";
  return fmt::format("{}/{}", fmt::join(preparation.mean, ","), fmt::join(preparation.deviation, ","));
}

Status parse_augment(std::string_view text, SamplePreparation& preparation) {
  preparation.crop_pixels = 0;
  preparation.flip = false;
  if (text == "none") return {};
  const Error misread = invalid("'{}': use crop:PIXELS, flip, crop:PIXELS,flip, or none", text);
  if (text.empty() || text.ends_with(',')) return misread;
  for (std::string_view rest = text; !rest.empty();) {
    constexpr std::string_view kCrop = "crop:";
    const std::string_view word = next_word(rest);
    if (word == "flip" && !preparation.flip) {
      preparation.flip = true;
    } else if (!word.starts_with(kCrop) || preparation.crop_pixels > 0 ||
               !read_number(word.substr(kCrop.size()), preparation.crop_pixels) ||
               preparation.crop_pixels == 0) {
      return misread;
    }
  }
  return {};
}

std::string augment_of(const SamplePreparation& preparation) {
  if (!preparation.augments()) return "none";
  std::string text;
  if (preparation.crop_pixels > 0) text = fmt::format("crop:{}", preparation.crop_pixels);
  if (preparation.flip) text += text.empty() ? "flip" : ",flip";
  return text;
}

Error no_choice(std::string_view text, std::span<const std::string_view> names) {
  const auto first = names.first(names.size() - 1);
  return invalid("'{}' is not a choice; use {} or {}", text, fmt::join(first, ", "), names.back());
}

Result<LosslessChoice> parse_lossless_choice(std::string_view text) {
  return codec_choice(text, parse_lossless);
}

Result<std::optional<LosslessChoice>> parse_lossless_or_same(std::string_view text) {
  if (text == "same") return std::optional<LosslessChoice>();
  W5XDE_TRY(const LosslessChoice choice, parse_lossless_choice(text));
  return std::optional(choice);
}

Result<GradientChoice> parse_gradient_choice(std::string_view text) {
  return codec_choice(text, parse_gradient_codec);
}

std::string to_string(const std::optional<LosslessChoice>& choice) {
  return choice ? to_string(*choice) : "same";
}

Result<std::optional<std::int64_t>> parse_ignore_index(std::string_view text) {
  if (text == "none") return std::optional<std::int64_t>();
  std::int64_t ignored = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ignored);
  if (error == std::errc() && end == text.data() + text.size()) return std::optional(ignored);
  return invalid("'{}': use a whole number, as -100, or none", text);
}

std::string to_string(const std::optional<std::int64_t>& ignored) {
  return ignored ? std::to_string(*ignored) : "none";
}

}  // namespace w5xde
