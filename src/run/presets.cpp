#include "run/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/errors.h"

namespace w5xde {

namespace {

constexpr std::array<std::string_view, 9> kPresets = {
    "early",    "standard",      "current", "enhanced", "lz4-block", "direct-tensor", "gradient-compression",
    "adaptive", "adaptive-lossy"};

constexpr LosslessChoice kNone;
constexpr LosslessChoice kZlib9{{LosslessKind::zlib, 9}}, kZlib1{{LosslessKind::zlib, 1}};
constexpr LosslessChoice kLz4Frame{{LosslessKind::lz4_frame, 1}}, kLz4Fastest{{LosslessKind::lz4, 65537}};
constexpr std::nullopt_t kSame = std::nullopt;

struct Generation {
  std::uint64_t socket_buffer, receive_chunk;
  bool keep_alive, quick_ack, combined_send;
  Serialization serialization;
  LosslessChoice down;
  std::optional<LosslessChoice> up;
  std::uint64_t codec_threshold;
  GradientKind gradients;
};

using enum Serialization;
using enum GradientKind;

// In the order of kPresets.
constexpr Generation kGenerations[] = {
    // buffer, chunk, keep-alive, quick-ack, combined, serialization, down, up, threshold, gradients
    {512 * kKiB, 0, false, false, false, generic, kNone, kSame, 0, none},
    {1 * kMiB, 0, true, false, false, generic, kZlib9, kZlib1, 0, none},
    {8 * kMiB, 256 * kKiB, true, true, false, generic, kZlib9, kZlib1, 1 * kMiB, none},
    {16 * kMiB, 1 * kMiB, true, true, true, generic, kLz4Frame, kLz4Frame, 512 * kKiB, none},
    {16 * kMiB, 1 * kMiB, true, true, true, generic, kLz4Fastest, kLz4Fastest, 512 * kKiB, none},
    {16 * kMiB, 1 * kMiB, true, true, true, direct, kLz4Fastest, kLz4Fastest, 512 * kKiB, none},
    {1 * kMiB, 0, true, false, false, generic, kZlib9, kZlib1, 0, int8},
};

// None of them kept samples, cut a model into parts, shared memory, or left out nodes.
Transport of_history(const Generation& generation) {
  return {.socket_buffer = generation.socket_buffer,
          .keep_alive = generation.keep_alive,
          .quick_ack = generation.quick_ack,
          .receive_chunk = generation.receive_chunk,
          .combined_send = generation.combined_send,
          .serialization = generation.serialization,
          .codec = generation.down,
          .contribution_codec = generation.up,
          .codec_threshold = generation.codec_threshold,
          .gradient_codec = {{.kind = generation.gradients}},
          .sample_cache = SampleCaching::off,
          .part_bytes = 0,
          .shared_memory = MemorySharing::off,
          .who_works = WhoWorks::all};
}

}  // namespace

std::span<const std::string_view> preset_names() {
  return kPresets;
}

Result<Transport> preset(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name);
  if (found == kPresets.end())
    return invalid("'{}' is no preset; take one of {}", name, fmt::join(kPresets, ", "));
  const auto number = static_cast<std::size_t>(found - kPresets.begin());
  Transport made = number < std::size(kGenerations) ? of_history(kGenerations[number]) : Transport();
  made.preset = name;
  // It may choose lossy codecs too, where they pay.
  if (name == "adaptive-lossy") made.gradient_codec.automatic = made.parameter_codec.automatic = true;
  return made;
}

}  // namespace w5xde
