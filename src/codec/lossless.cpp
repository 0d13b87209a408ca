#include "codec/lossless.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "codec/lossless_libraries.h"

namespace w5xde {

namespace {

struct KindTraits {
  LosslessKind kind;
  std::string_view name;
  int level_min;
  int level_max;
  int level_default;
};

constexpr KindTraits kKinds[] = {
    {LosslessKind::none, "none", 0, 0, 0},   {LosslessKind::zlib, "zlib", 1, 9, 6},
    {LosslessKind::lz4, "lz4", 1, 65537, 1}, {LosslessKind::lz4_frame, "lz4-frame", 1, 65537, 1},
    {LosslessKind::zstd, "zstd", -7, 19, 3},
};

constexpr bool each_kind_is_at_its_number() {
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    if (static_cast<std::size_t>(kKinds[i].kind) != i || !is_known(static_cast<std::uint8_t>(i)))
      return false;
  return !is_known(std::size(kKinds));
}
static_assert(each_kind_is_at_its_number());

const KindTraits& traits_of(LosslessKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::string levels_of(const KindTraits& traits) {
  if (traits.kind == LosslessKind::none) return "none takes no level";
  // Zero is nobody's level: to zstd it means "the default", which is written out here.
  if (traits.level_min < 0)
    return fmt::format("{} takes {} to -1 and 1 to {}", traits.name, traits.level_min, traits.level_max);
  return fmt::format("{} takes {} to {}", traits.name, traits.level_min, traits.level_max);
}

Result<LosslessCodec> with_level(const KindTraits& traits, std::string_view digits) {
  int level = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), level);
  const bool is_number = failure == std::errc() && end == digits.data() + digits.size();
  if (!is_number || level == 0 || level < traits.level_min || level > traits.level_max)
    return invalid(
        fmt::format("'{}' is not a level of lossless codec {}: {}", digits, traits.name, levels_of(traits)));
  return LosslessCodec{traits.kind, level};
}

}  // namespace

std::string_view name_of(LosslessKind kind) {
  return is_known(static_cast<std::uint8_t>(kind)) ? traits_of(kind).name : "unknown";
}

Result<LosslessCodec> parse_lossless(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto* traits = std::ranges::find(kKinds, name, &KindTraits::name);
  if (traits == std::end(kKinds))
    return invalid(fmt::format(
        "'{}' is not a lossless codec: use none, zlib, lz4, lz4-frame or zstd, with a level as in zstd:3",
        name));
  if (colon == std::string_view::npos) return LosslessCodec{traits->kind, traits->level_default};
  return with_level(*traits, text.substr(colon + 1));
}

std::string to_string(LosslessCodec codec) {
  if (codec.kind == LosslessKind::none) return "none";
  return fmt::format("{}:{}", name_of(codec.kind), codec.level);
}

int nearest_level(LosslessCodec codec) {
  const KindTraits& traits = traits_of(codec.kind);
  return std::clamp(codec.level, traits.level_min, traits.level_max);
}

}  // namespace w5xde
