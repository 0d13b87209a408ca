// How a run's bytes travel: sockets, serialization, codecs. Nothing here changes what is computed, but for
// the lossy codecs. The presets are the generations of the seeds' history, so that anyone can see what each
// idea is worth, and `adaptive`, which measures and decides.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "codec/gradient.h"
#include "codec/section.h"
#include "w5xde/result.h"

namespace w5xde {

inline constexpr std::uint64_t kPartBytesUsual = 256 * kKiB;

struct Transport {
  std::string preset = "adaptive";

  std::uint64_t socket_buffer = 0;  // bytes; 0: the kernel's own, more where bandwidth × delay asks for it
  bool keep_alive = true;
  bool quick_ack = true;
  std::uint64_t receive_chunk = 0;  // bytes that one read takes at most; 0: what there is room for
  bool combined_send = true;        // header and payload in one call

  std::string serialization = "direct";     // or generic: numbers one by one
  std::string codec = "auto";               // lossless, of what nodes receive
  std::string contribution_codec = "same";  // lossless, of what nodes send; same: as codec
  std::uint64_t codec_threshold = 0;        // bytes; smaller contributions travel as they are

  std::string gradient_codec = "none";   // lossy, of what nodes send
  std::string parameter_codec = "none";  // lossy, of what changes in the parameters
  // Whether nodes keep samples, so that each crosses their link once: auto (where the link is slow), on, off.
  std::string sample_cache = "auto";
  // Bytes; larger models travel in parts of so many: one is stepped and on its way back while the next still
  // arrives. 0: in one piece.
  std::uint64_t part_bytes = kPartBytesUsual;
  // Whether as many nodes take part in a step as make it faster (auto), or all.
  std::string crew = "auto";

  Status check() const;

  bool generic() const { return serialization == "generic"; }
  bool automatic(std::string_view setting) const { return setting == "auto"; }
  const std::string& codec_up() const { return contribution_codec == "same" ? codec : contribution_codec; }
};

std::span<const std::string_view> preset_names();
Result<Transport> preset(std::string_view name);

// Of a model of so many floats: how many a part has; 0: it travels in one piece.
std::uint64_t part_floats(std::uint64_t floats, std::uint64_t part_bytes);

// How many slots every lease of a step has with this codec for contributions; 0: as suits the node.
std::uint32_t lease_grain(const GradientCodec& codec, std::uint32_t step_slots);

// A lossless codec as payloads of floats are sent with it.
SectionCodec section_codec(std::string_view lossless);

}  // namespace w5xde
