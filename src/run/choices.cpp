#include "run/choices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "base/errors.h"

namespace w5xde {

namespace {

template <class Codec>
Result<Choice<Codec>> codec_choice(std::string_view text, Result<Codec> (*parse)(std::string_view)) {
  if (text == "auto") return Choice<Codec>{.automatic = true};
  W5XDE_TRY(const Codec codec, parse(text));
  return Choice<Codec>{.codec = codec};
}

}  // namespace

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
