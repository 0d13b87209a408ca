// Which lossless codec a payload travels with, decided from measurements alone: no clock, no thread, and the
// same calls give the same choices.
//
//   cost of a payload = encoding + wire bytes / link rate + decoding, one after the other
//   excess            = what a payload cost beyond what it would have cost raw
//   probe             = a payload sent with a codec that is not known to be the best, to measure it
//
// The cheapest codec is taken. Excess, of probes and of choices that turned out wrong, is kept below a
// fiftieth of what all payloads would have cost raw: while it is not, nothing is probed.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codec/section.h"

namespace w5xde {

// For one direction of one link. One thread at a time.
class LosslessPolicy {
 public:
  // The codec for the next payload. A link rate of 0 is one that is not known yet.
  SectionCodec choose(std::uint64_t raw_bytes, double link_bytes_per_second);

  // Which chunks are worth compressing with that codec; for SectionEncoder. Valid until the next call.
  std::span<const std::uint8_t> chunks_to_try() const { return tried_; }

  // What came of the last choice. decode_seconds 0 is not known; `chunk_bytes` are the encoded sizes of the
  // chunks, or nothing where all are alike.
  void measured(const SectionCodec& codec, std::uint64_t raw_bytes, std::uint64_t wire_bytes,
                double encode_seconds, double decode_seconds,
                std::span<const std::uint32_t> chunk_bytes = {});

  // "zstd:1 (1.18x smaller)", "uncompressed (still measuring)"
  std::string describe() const;

 private:
  static constexpr std::size_t kCandidates = 3;
  static constexpr std::size_t kRaw = kCandidates;  // stands for no candidate

  // What is known of one codec.
  struct Candidate {
    bool is_measured() const { return samples > 0; }

    std::uint64_t samples = 0;
    std::array<double, 3> recent_seconds_per_byte = {};  // of encoding and decoding what was tried
    double seconds_per_byte = 0;                         // the middle one
    std::uint64_t raw_bytes = 0;                         // of the payload last measured
    std::vector<double> chunk_ratios;                    // its wire bytes to raw bytes, per chunk
    std::uint64_t probe_at = 0;                          // payloads_ from which on it may be probed
    std::uint64_t probe_interval = 0;
  };

  double cost(const Candidate& candidate, std::uint64_t raw_bytes) const;
  double ratio(const Candidate& candidate) const;
  bool was_tried(std::size_t chunk) const { return chunk >= tried_.size() || tried_[chunk] != 0; }
  std::uint64_t tried_bytes(std::uint64_t raw_bytes) const;
  bool pays(const Candidate& candidate, double chunk_ratio) const;
  bool leaves_chunks(const Candidate& candidate, std::uint64_t raw_bytes) const;
  std::size_t cheapest(std::uint64_t raw_bytes) const;
  std::size_t due_probe(std::uint64_t raw_bytes) const;
  void mark_chunks(const Candidate& candidate, std::uint64_t raw_bytes);
  void compare_anew();
  void learn_ratios(Candidate& candidate, std::uint64_t raw_bytes, std::uint64_t wire_bytes,
                    std::span<const std::uint32_t> chunk_bytes) const;
  void learn_time(Candidate& candidate, double seconds_per_byte) const;
  void learn_threshold(std::uint64_t raw_bytes, double excess_seconds);

  std::array<Candidate, kCandidates> candidates_;
  std::size_t current_ = kRaw;
  std::vector<std::uint8_t> tried_;
  double link_ = 0;
  double probed_link_ = 0;  // the rate at which the candidates were compared
  std::uint64_t payloads_ = 0;
  std::uint64_t unsettled_at_ = 0;   // payloads_ when the candidates were last to be compared anew
  std::uint64_t largest_bytes_ = 0;  // of recent payloads
  std::uint64_t threshold_bytes_ = 0;
  double raw_seconds_ = 0, excess_seconds_ = 0;
};

}  // namespace w5xde
