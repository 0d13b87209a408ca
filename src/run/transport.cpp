#include "run/transport.h"

#include <algorithm>
#include <bit>

#include "base/errors.h"

namespace w5xde {

namespace {

// The kernel grants less where its limit is lower; what it granted is reported.
constexpr std::uint64_t kSocketBufferMax = 1 * kGiB;
// Where bytes move faster than this, sending a sample again costs less than looking for it.
constexpr double kCacheBytesPerSecondMax = 200e6;
// A stateless lossy codec rounds each contribution, so that a step's sum depends on how the step is cut: in
// about this many pieces, whoever computes them.
constexpr std::uint32_t kPiecesAStep = 8;

}  // namespace

Status Transport::check() const {
  if (socket_buffer <= kSocketBufferMax) return {};
  return invalid("--socket-buffer {} is too much; use {} or less", socket_buffer, kSocketBufferMax);
}

bool Transport::keeps_samples(bool local, double bytes_per_second) const {
  if (sample_cache != SampleCaching::automatic) return sample_cache == SampleCaching::on;
  return !local || (bytes_per_second > 0 && bytes_per_second < kCacheBytesPerSecondMax);
}

LosslessChoice Transport::codec_up(std::uint64_t bytes) const {
  const LosslessChoice& chosen = contribution_codec ? *contribution_codec : codec;
  return chosen.automatic || bytes >= codec_threshold ? chosen : LosslessChoice();
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

}  // namespace w5xde
