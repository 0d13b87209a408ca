// A frame is what travels: header, head, payload, checksum. docs/wire_format.md has the picture; the offsets
// are here.
//
//   header    24 bytes, fixed; carries its own checksum, so its lengths are proven before they are believed
//   head      the message's fields and the descriptors of its tensors; small
//   payload   the tensors' bytes, or an encoded section of them; may be large, lands where the receiver says
//   checksum  XXH3-64 of head and payload as they travel
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/limits.h"
#include "w5xde/result.h"

namespace w5xde {

inline constexpr std::size_t kFrameHeaderBytes = 24;
inline constexpr std::size_t kFrameChecksumBytes = 8;
inline constexpr std::uint8_t kFrameVersion = 1;
inline constexpr std::array<std::uint8_t, 4> kFrameMagic = {'W', '5', 'X', 'D'};

// The numbers are part of the wire format.
enum class FrameType : std::uint8_t {
  hello = 1,         // who I am and what I speak; the first frame in both directions
  goodbye = 2,       // why I am leaving; the last frame
  ping = 3,          // answer me
  pong = 4,          // the answer
  tensors = 5,       // tensors, each as its own bytes; for measuring and tests
  value = 6,         // reserved: no role sends it
  lease = 7,         // coordinator to node: compute these slots
  contribution = 8,  // node to coordinator: the sums of a lease's slots
  parameters = 9,    // coordinator to node: a range of a parameter version
  offer = 10,        // coordinator to node: what the run is
  ready = 11,        // node to coordinator: the model is loaded
  model = 12,        // a part of the model's file, or a request for it
  status = 13,       // observer to coordinator: how is the run? and the answer
  feedback = 14,     // error feedback of a lossy codec: asked for, copied, handed over
  verdict = 15,      // coordinator to node: whether a contribution counts
  proof = 16,        // to a coordinator with TLS: I was invited
};

std::string_view name_of(FrameType type);

// Numbers of lossless codecs that this version of the format knows, 0 (none) among them.
inline constexpr std::uint8_t kFrameCodecs = 5;

struct FrameHeader {
  FrameType type = FrameType::ping;
  std::uint8_t codec = 0;          // the payload's lossless codec, a LosslessKind; 0 is none
  std::uint8_t shuffle_width = 0;  // bytes of an element that the payload was shuffled by: 0, 2, 4 or 8
  std::uint32_t head_bytes = 0;
  std::uint64_t payload_bytes = 0;  // as it travels

  std::uint64_t frame_bytes() const {
    return kFrameHeaderBytes + head_bytes + payload_bytes + kFrameChecksumBytes;
  }
  bool operator==(const FrameHeader&) const = default;
};

using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

FrameHeaderBytes encode_frame_header(const FrameHeader& header);

// Proves a header: magic, checksum, version, type, flags, and lengths within limits, in this order.
Result<FrameHeader> decode_frame_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                        const Limits& limits);

}  // namespace w5xde
