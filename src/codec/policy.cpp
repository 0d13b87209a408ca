#include "codec/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace w5xde {

namespace {

// Before a codec was measured here: what it costs where it is slow, and below what it costs nowhere. Seconds
// per byte, encoding and decoding.
struct Kind {
  SectionCodec codec;
  double slow, fast;
};
constexpr Kind kKinds[] = {{{{LosslessKind::lz4, 1}, 4}, 1 / 200e6, 1 / 2000e6},
                           {{{LosslessKind::zstd, 1}, 4}, 1 / 120e6, 1 / 800e6},
                           {{{LosslessKind::zstd, 3}, 4}, 1 / 60e6, 1 / 500e6}};

constexpr double kExcessMax = 0.02;    // of what raw would have cost
constexpr double kBetter = 0.97;       // of the current cost, or it is not worth a change
constexpr double kStillBetter = 0.99;  // of what raw costs, or it is not worth going on
constexpr double kLinkChange = 1.5;    // times faster or slower
constexpr double kRatioChange = 0.05;
constexpr std::uint64_t kSettling = 32;  // payloads, in which data that keeps changing is no news
constexpr std::uint64_t kProbeIntervalMin = 8, kProbeIntervalMax = 256;  // payloads
// Smaller than an eighth of the large ones, a payload tells nothing of them.
constexpr std::uint64_t kTelling = 8;
constexpr std::uint64_t kThresholdMin = 1024, kThresholdStart = 4096, kThresholdMax = 65536;

std::uint64_t bytes_of_chunk(std::uint64_t chunk, std::uint64_t raw_bytes) {
  const std::uint64_t start = chunk << kChunkLog2Default;
  return std::min<std::uint64_t>(std::uint64_t{1} << kChunkLog2Default, raw_bytes - start);
}

double mean_of(std::span<const double> ratios) {
  double sum = 0;
  for (const double ratio : ratios) sum += ratio;
  return ratios.empty() ? 1 : sum / static_cast<double>(ratios.size());
}

}  // namespace

bool LosslessPolicy::pays(const Candidate& candidate, double chunk_ratio) const {
  return chunk_ratio + candidate.seconds_per_byte * link_ < 1;
}

// Each chunk counts as the cheaper of raw and compressed. A payload of another size than the measured one is
// taken to have chunks that are all alike.
double LosslessPolicy::cost(const Candidate& candidate, std::uint64_t raw_bytes) const {
  const double raw = static_cast<double>(raw_bytes) / link_;
  if (raw_bytes != candidate.raw_bytes)
    return raw * ratio(candidate) + static_cast<double>(raw_bytes) * candidate.seconds_per_byte;
  double seconds = 0;
  for (std::size_t chunk = 0; chunk < candidate.chunk_ratios.size(); ++chunk) {
    const auto bytes = static_cast<double>(bytes_of_chunk(chunk, raw_bytes));
    const double chunk_ratio = candidate.chunk_ratios[chunk];
    seconds += pays(candidate, chunk_ratio) ? bytes * (chunk_ratio / link_ + candidate.seconds_per_byte)
                                            : bytes / link_;
  }
  return seconds;
}

// Of what it compresses and what it leaves, as of the last payload.
double LosslessPolicy::ratio(const Candidate& candidate) const {
  double wire = 0;
  for (std::size_t chunk = 0; chunk < candidate.chunk_ratios.size(); ++chunk) {
    const double chunk_ratio = candidate.chunk_ratios[chunk];
    wire += static_cast<double>(bytes_of_chunk(chunk, candidate.raw_bytes)) *
            (pays(candidate, chunk_ratio) ? chunk_ratio : 1);
  }
  return candidate.raw_bytes == 0 ? 1 : wire / static_cast<double>(candidate.raw_bytes);
}

bool LosslessPolicy::leaves_chunks(const Candidate& candidate, std::uint64_t raw_bytes) const {
  return raw_bytes == candidate.raw_bytes &&
         !std::ranges::all_of(candidate.chunk_ratios, [&](double each) { return pays(candidate, each); });
}

// It takes a margin to change; a smaller one back to raw, which is what nothing may cost more than.
std::size_t LosslessPolicy::cheapest(std::uint64_t raw_bytes) const {
  const double raw = static_cast<double>(raw_bytes) / link_;
  const auto cost_of = [&](std::size_t index) {
    return index == kRaw ? raw : cost(candidates_[index], raw_bytes);
  };
  std::size_t best = current_ != kRaw && cost_of(current_) < raw * kStillBetter ? current_ : kRaw;
  double to_beat = cost_of(best) * kBetter;
  for (std::size_t i = 0; i < kCandidates; ++i) {
    if (!candidates_[i].is_measured() || i == best || cost_of(i) >= to_beat) continue;
    best = i;
    to_beat = cost_of(i);
  }
  return best;
}

// A candidate whose time has come, that could win if only the data were good enough, and that may be paid for
// even if the data is not.
std::size_t LosslessPolicy::due_probe(std::uint64_t raw_bytes) const {
  const auto bytes = static_cast<double>(raw_bytes);
  const double to_beat = current_ == kRaw ? bytes / link_ : cost(candidates_[current_], raw_bytes);
  for (std::size_t i = 0; i < kCandidates; ++i) {
    const Candidate& candidate = candidates_[i];
    if (payloads_ < candidate.probe_at) continue;
    if (i == current_ && !leaves_chunks(candidate, raw_bytes)) continue;
    // The machine may have been busy when it was measured.
    const double least = candidate.is_measured() ? candidate.seconds_per_byte / 2 : kKinds[i].fast;
    if (bytes * least >= to_beat) continue;
    const double worst = candidate.is_measured() ? candidate.seconds_per_byte : kKinds[i].slow;
    if (excess_seconds_ + bytes * worst <= kExcessMax * raw_seconds_) return i;
  }
  return kRaw;
}

void LosslessPolicy::mark_chunks(const Candidate& candidate, std::uint64_t raw_bytes) {
  if (!leaves_chunks(candidate, raw_bytes)) return;
  for (const double each : candidate.chunk_ratios) tried_.push_back(pays(candidate, each) ? 1 : 0);
}

void LosslessPolicy::compare_anew() {
  unsettled_at_ = payloads_;
  for (Candidate& candidate : candidates_) {
    candidate.probe_at = payloads_;
    candidate.probe_interval = kProbeIntervalMin;
  }
}

SectionCodec LosslessPolicy::choose(std::uint64_t raw_bytes, double link_bytes_per_second) {
  tried_.clear();
  link_ = link_bytes_per_second;
  if (!(link_ > 0) || raw_bytes == 0) return {};
  const bool link_changed = link_ > kLinkChange * probed_link_ || probed_link_ > kLinkChange * link_;
  if (link_changed) {
    probed_link_ = link_;
    threshold_bytes_ = kThresholdStart;
    compare_anew();
  }
  raw_seconds_ += static_cast<double>(raw_bytes) / link_;
  if (raw_bytes < threshold_bytes_) return {};
  ++payloads_;
  // A size that no longer comes is forgotten by and by.
  largest_bytes_ = std::max(raw_bytes, largest_bytes_ - largest_bytes_ / 64);

  const std::size_t before = current_;
  current_ = cheapest(raw_bytes);
  if (before != kRaw && current_ != before) {
    candidates_[before].probe_interval = kProbeIntervalMin;
    candidates_[before].probe_at = payloads_ + kProbeIntervalMin;
  }
  const bool telling = raw_bytes >= largest_bytes_ / kTelling;
  if (const std::size_t probe = telling ? due_probe(raw_bytes) : kRaw; probe != kRaw) {
    Candidate& candidate = candidates_[probe];
    candidate.probe_at = payloads_ + candidate.probe_interval;
    candidate.probe_interval = std::min(2 * candidate.probe_interval, kProbeIntervalMax);
    return kKinds[probe].codec;
  }
  if (current_ == kRaw) return {};
  mark_chunks(candidates_[current_], raw_bytes);
  return kKinds[current_].codec;
}

// The middle of three, so that one interruption changes nothing.
void LosslessPolicy::learn_time(Candidate& candidate, double seconds_per_byte) const {
  auto recent = candidate.recent_seconds_per_byte;
  // The first has to allocate its memory; it is forgotten if the second is quicker.
  if (candidate.samples == 0 || (candidate.samples == 1 && seconds_per_byte < recent[0]))
    recent.fill(seconds_per_byte);
  recent[candidate.samples++ % recent.size()] = seconds_per_byte;
  candidate.recent_seconds_per_byte = recent;
  std::ranges::sort(recent);
  candidate.seconds_per_byte = recent[1];
}

// Below some size what a call costs at all outweighs what it saves.
void LosslessPolicy::learn_threshold(std::uint64_t raw_bytes, double excess_seconds) {
  if (raw_bytes > kThresholdMax) return;
  if (excess_seconds > 0) {
    threshold_bytes_ = std::min(2 * raw_bytes, kThresholdMax);
  } else if (raw_bytes < 2 * threshold_bytes_) {
    threshold_bytes_ = std::max(raw_bytes, kThresholdMin);
  }
}

std::uint64_t LosslessPolicy::tried_bytes(std::uint64_t raw_bytes) const {
  std::uint64_t bytes = 0;
  for (std::size_t chunk = 0; chunk < chunk_count(raw_bytes, kChunkLog2Default); ++chunk)
    bytes += was_tried(chunk) ? bytes_of_chunk(chunk, raw_bytes) : 0;
  return bytes;
}

void LosslessPolicy::learn_ratios(Candidate& candidate, std::uint64_t raw_bytes, std::uint64_t wire_bytes,
                                  std::span<const std::uint32_t> chunk_bytes) const {
  const std::uint64_t chunks = chunk_count(raw_bytes, kChunkLog2Default);
  if (candidate.raw_bytes != raw_bytes) candidate.chunk_ratios.assign(chunks, 1);
  candidate.raw_bytes = raw_bytes;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    if (!was_tried(chunk)) continue;
    candidate.chunk_ratios[chunk] =
        chunk_bytes.size() == chunks
            ? static_cast<double>(chunk_bytes[chunk]) / static_cast<double>(bytes_of_chunk(chunk, raw_bytes))
            : static_cast<double>(wire_bytes) / static_cast<double>(raw_bytes);
  }
}

void LosslessPolicy::measured(const SectionCodec& codec, std::uint64_t raw_bytes, std::uint64_t wire_bytes,
                              double encode_seconds, double decode_seconds,
                              std::span<const std::uint32_t> chunk_bytes) {
  const auto* kind = std::ranges::find(kKinds, codec, &Kind::codec);
  if (kind == std::end(kKinds) || !(link_ > 0) || raw_bytes == 0) return;
  const auto index = static_cast<std::size_t>(kind - kKinds);
  Candidate& candidate = candidates_[index];
  if (decode_seconds <= 0)
    decode_seconds = encode_seconds / (codec.lossless.kind == LosslessKind::lz4 ? 1 : 3);
  const double seconds = encode_seconds + decode_seconds;
  const auto bytes = static_cast<double>(raw_bytes);
  const double excess = seconds + (static_cast<double>(wire_bytes) - bytes) / link_;
  excess_seconds_ += std::max(0.0, excess);
  if (raw_bytes < largest_bytes_ / kTelling) return learn_threshold(raw_bytes, excess);

  const bool was_measured = candidate.is_measured();
  const double ratio_before = mean_of(candidate.chunk_ratios);
  learn_ratios(candidate, raw_bytes, wire_bytes, chunk_bytes);
  learn_time(candidate, seconds / static_cast<double>(std::max<std::uint64_t>(1, tried_bytes(raw_bytes))));
  // Where this one's ratio has changed, the others' have too.
  const bool changed =
      was_measured && std::abs(mean_of(candidate.chunk_ratios) - ratio_before) > kRatioChange;
  if (changed && payloads_ >= unsettled_at_ + kSettling) compare_anew();
}

std::string LosslessPolicy::describe() const {
  if (!(link_ > 0)) return "uncompressed (link rate unknown)";
  if (current_ != kRaw) {
    return fmt::format("{} ({:.2f}x smaller)", to_string(kKinds[current_].codec.lossless),
                       1 / ratio(candidates_[current_]));
  }
  bool too_fast = true, known = true;
  for (std::size_t i = 0; i < kCandidates; ++i) {
    const Candidate& candidate = candidates_[i];
    const double least = candidate.is_measured() ? candidate.seconds_per_byte : kKinds[i].fast;
    if (least * link_ >= 1) continue;  // whatever the data
    too_fast = false;
    known = known && candidate.is_measured();
  }
  if (too_fast) return "uncompressed (the link is faster than compressing)";
  return known ? "uncompressed (does not compress enough)" : "uncompressed (still measuring)";
}

}  // namespace w5xde
