// How a run's bytes travel: sockets, serialization, codecs. None of it changes what is computed, except for
// the lossy codecs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/limits.h"
#include "codec/gradient.h"
#include "run/choices.h"
#include "w5xde/result.h"

namespace w5xde {

inline constexpr std::uint64_t kPartBytesUsual = 256 * kKiB;
// A smaller model crosses a loopback socket faster than blocks of memory are named, mapped and found in no
// cache.
inline constexpr std::uint64_t kSharedBytesMin = 1 * kMiB;

struct Transport {
  std::string preset = "adaptive";  // what the rest was before single settings changed it

  std::uint64_t socket_buffer = 0;  // bytes; 0: the kernel's own, more where bandwidth × delay asks for it
  bool keep_alive = true;
  bool quick_ack = true;
  std::uint64_t receive_chunk = 0;  // bytes that one read takes at most; 0: what there is room for
  bool combined_send = true;        // header and payload in one call

  Serialization serialization = Serialization::direct;
  LosslessChoice codec = {.automatic = true};        // of what nodes receive
  std::optional<LosslessChoice> contribution_codec;  // of what nodes send; nullopt: the same
  std::uint64_t codec_threshold = 0;                 // bytes; smaller contributions travel as they are

  GradientChoice gradient_codec;   // lossy, of what nodes send
  GradientChoice parameter_codec;  // lossy, of what changes in the parameters
  SampleCaching sample_cache = SampleCaching::automatic;
  // Bytes. A larger model travels in parts of this size: one part is stepped and on its way back while the
  // next still arrives. 0: in one piece.
  std::uint64_t part_bytes = kPartBytesUsual;
  MemorySharing shared_memory = MemorySharing::automatic;
  WhoWorks who_works = WhoWorks::fastest;

  Status check() const;

  bool generic() const { return serialization == Serialization::generic; }
  // Whether a node keeps samples whose link has this rate (0: not known), on the coordinator's machine or
  // not.
  bool keeps_samples(bool local, double bytes_per_second) const;
  // The lossless codec of contributions that have this many bytes.
  LosslessChoice codec_up(std::uint64_t bytes) const;
};

// How many floats a part of a model of `floats` floats has; 0: the model travels in one piece.
std::uint64_t part_floats(std::uint64_t floats, std::uint64_t part_bytes);

// How many slots every lease of a step has with this codec for contributions; 0: as suits the node.
std::uint32_t lease_grain(const GradientCodec& codec, std::uint32_t step_slots);

}  // namespace w5xde
