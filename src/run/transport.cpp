#include "run/transport.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/limits.h"

namespace w5xde {

namespace {

constexpr std::array<std::string_view, 9> kPresets = {
    "early",    "standard",      "current", "enhanced", "lz4-block", "direct-tensor", "gradient-compression",
    "adaptive", "adaptive-lossy"};

// The kernel grants less where its limit is lower; what it granted is reported.
constexpr std::uint64_t kSocketBufferMax = 1 * kGiB;
// A stateless lossy codec rounds each contribution, so that a step's sum depends on how the step is cut: in
// about this many pieces, whoever computes them.
constexpr std::uint32_t kPiecesAStep = 8;

Transport early() {
  return {.preset = "early",
          .socket_buffer = 512 * kKiB,
          .keep_alive = false,
          .quick_ack = false,
          .combined_send = false,
          .serialization = "generic",
          .codec = "none",
          .sample_cache = "off",
          .part_bytes = 0,
          .crew = "all"};
}

Transport standard() {
  Transport made = early();
  made.preset = "standard";
  made.socket_buffer = 1 * kMiB;
  made.keep_alive = true;
  made.codec = "zlib:9";
  made.contribution_codec = "zlib:1";
  return made;
}

Transport current() {
  Transport made = standard();
  made.preset = "current";
  made.socket_buffer = 8 * kMiB;
  made.quick_ack = true;
  made.receive_chunk = 256 * kKiB;
  made.codec_threshold = 1 * kMiB;
  return made;
}

Transport enhanced() {
  Transport made = current();
  made.preset = "enhanced";
  made.socket_buffer = 16 * kMiB;
  made.receive_chunk = 1 * kMiB;
  made.combined_send = true;
  made.codec = "lz4-frame";
  made.contribution_codec = "lz4-frame";
  made.codec_threshold = 512 * kKiB;
  return made;
}

Transport lz4_block() {
  Transport made = enhanced();
  made.preset = "lz4-block";
  made.codec = "lz4:65537";  // its fastest
  made.contribution_codec = "lz4:65537";
  return made;
}

Transport direct_tensor() {
  Transport made = lz4_block();
  made.preset = "direct-tensor";
  made.serialization = "direct";
  return made;
}

Transport gradient_compression() {
  Transport made = standard();
  made.preset = "gradient-compression";
  made.gradient_codec = "int8";
  return made;
}

Transport adaptive() {
  return {};
}

// Adaptive, and free to choose lossy codecs where they pay.
Transport adaptive_lossy() {
  Transport made;
  made.preset = "adaptive-lossy";
  made.gradient_codec = "auto";
  made.parameter_codec = "auto";
  return made;
}

Status check_lossless(std::string_view setting, const std::string& value) {
  if (value == "auto") return {};
  const auto parsed = parse_lossless(value);
  return parsed.ok() ? Status() : Status(Error(parsed.error()).within(std::string(setting)));
}

Status check_gradient(std::string_view setting, const std::string& value) {
  if (value == "auto") return {};
  const auto parsed = parse_gradient_codec(value);
  return parsed.ok() ? Status() : Status(Error(parsed.error()).within(std::string(setting)));
}

}  // namespace

std::span<const std::string_view> preset_names() {
  return kPresets;
}

Result<Transport> preset(std::string_view name) {
  using Make = Transport (*)();
  constexpr std::array<Make, kPresets.size()> kMakers = {
      early,    standard,      current, enhanced, lz4_block, direct_tensor, gradient_compression,
      adaptive, adaptive_lossy};
  const auto found = std::ranges::find(kPresets, name);
  if (found == kPresets.end())
    return invalid(fmt::format("'{}' is no preset; take one of {}", name, fmt::join(kPresets, ", ")));
  return kMakers[static_cast<std::size_t>(found - kPresets.begin())]();
}

Status Transport::check() const {
  W5XDE_CHECK(w5xde::preset(preset));
  if (serialization != "direct" && serialization != "generic")
    return invalid(fmt::format("--serialization {}: direct or generic", serialization));
  if (sample_cache != "auto" && sample_cache != "on" && sample_cache != "off")
    return invalid(fmt::format("--sample-cache {}: auto, on or off", sample_cache));
  if (crew != "auto" && crew != "all") return invalid(fmt::format("--crew {}: auto or all", crew));
  if (socket_buffer > kSocketBufferMax)
    return invalid(fmt::format("--socket-buffer {} is more than {}", socket_buffer, kSocketBufferMax));
  W5XDE_CHECK(check_lossless("--codec", codec));
  if (contribution_codec != "same") W5XDE_CHECK(check_lossless("--contribution-codec", contribution_codec));
  W5XDE_CHECK(check_gradient("--gradient-codec", gradient_codec));
  return check_gradient("--parameter-codec", parameter_codec);
}

std::uint64_t part_floats(std::uint64_t floats, std::uint64_t part_bytes) {
  if (part_bytes < sizeof(float)) return 0;
  std::uint64_t part = std::max(part_bytes / sizeof(float), (floats + kPartsMax - 1) / kPartsMax);
  // Codecs by chunks can cut between chunks.
  if (part >= kGradientChunk) part = (part + kGradientChunk - 1) / kGradientChunk * kGradientChunk;
  return 2 * part <= floats ? part : 0;
}

std::uint32_t lease_grain(const GradientCodec& codec, std::uint32_t step_slots) {
  if (codec.kind == GradientKind::none || !codec.stateless()) return 0;
  return std::bit_floor(std::max(1u, step_slots / kPiecesAStep));
}

SectionCodec section_codec(std::string_view lossless) {
  return {.lossless = lossless == "auto" ? LosslessCodec() : parse_lossless(lossless).value()};
}

}  // namespace w5xde
