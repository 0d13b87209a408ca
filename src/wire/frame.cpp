#include "wire/frame.h"

#include <bit>
#include <cassert>
#include <cstring>
#include <iterator>

#include "base/errors.h"
#include "base/hash.h"

namespace w5xde {

namespace {

constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kVersionAt = 4;
constexpr std::size_t kTypeAt = 5;
constexpr std::size_t kCodecAt = 6;
constexpr std::size_t kFlagsAt = 7;
constexpr std::size_t kHeadBytesAt = 8;
constexpr std::size_t kPayloadBytesAt = 12;
constexpr std::size_t kHeaderChecksumAt = 20;

// Flags: the two low bits are log2 of the shuffle width (0: not shuffled); the others are not used and must
// be 0.
constexpr std::uint8_t kShuffleMask = 0x03;

std::uint32_t header_checksum(Bytes header) {
  return static_cast<std::uint32_t>(hash64(header.first(kHeaderChecksumAt)));
}

}  // namespace

std::string_view name_of(FrameType type) {
  constexpr std::string_view kNames[] = {"",      "hello",  "goodbye",      "ping",       "pong",  "tensors",
                                         "value", "lease",  "contribution", "parameters", "offer", "ready",
                                         "model", "status", "feedback",     "verdict",    "proof"};
  const auto number = static_cast<std::size_t>(type);
  return number < std::size(kNames) ? kNames[number] : std::string_view();
}

FrameHeaderBytes encode_frame_header(const FrameHeader& header) {
  assert(header.shuffle_width == 0 || header.shuffle_width == 2 || header.shuffle_width == 4 ||
         header.shuffle_width == 8);
  FrameHeaderBytes bytes{};
  std::memcpy(bytes.data() + kMagicAt, kFrameMagic.data(), kFrameMagic.size());
  store(bytes.data() + kVersionAt, kFrameVersion);
  store(bytes.data() + kTypeAt, static_cast<std::uint8_t>(header.type));
  store(bytes.data() + kCodecAt, header.codec);
  const int log2_width = header.shuffle_width == 0 ? 0 : std::countr_zero(header.shuffle_width);
  store(bytes.data() + kFlagsAt, static_cast<std::uint8_t>(log2_width));
  store(bytes.data() + kHeadBytesAt, header.head_bytes);
  store(bytes.data() + kPayloadBytesAt, header.payload_bytes);
  store(bytes.data() + kHeaderChecksumAt, header_checksum(bytes));
  return bytes;
}

Result<FrameHeader> decode_frame_header(std::span<const std::byte, kFrameHeaderBytes> bytes,
                                        const Limits& limits) {
  if (std::memcmp(bytes.data() + kMagicAt, kFrameMagic.data(), kFrameMagic.size()) != 0) {
    // So begins every handshake of TLS: the record's type and the first byte of its version.
    if (bytes[0] == std::byte{0x16} && bytes[1] == std::byte{0x03}) {
      return incompatible(
          "the other side speaks TLS, and this one does not; join HOST:PORT instead of an invitation, or "
          "serve "
          "with TLS");
    }
    return corrupt("not a w5xde frame: it starts with {:02x} {:02x} {:02x} {:02x}",
                   static_cast<unsigned>(bytes[0]), static_cast<unsigned>(bytes[1]),
                   static_cast<unsigned>(bytes[2]), static_cast<unsigned>(bytes[3]));
  }
  // The checksum's place is the same in every version, so a flipped bit is not taken for another version.
  const auto checksum = load<std::uint32_t>(bytes.data() + kHeaderChecksumAt);
  if (checksum != header_checksum(bytes)) return corrupt("frame header checksum does not fit");
  const auto version = load<std::uint8_t>(bytes.data() + kVersionAt);
  if (version != kFrameVersion) {
    return incompatible("frame version {}; this side speaks {}", version, kFrameVersion);
  }

  FrameHeader header;
  header.type = load<FrameType>(bytes.data() + kTypeAt);
  if (name_of(header.type).empty()) {
    return corrupt("frame type {} is not known", static_cast<unsigned>(header.type));
  }
  header.codec = load<std::uint8_t>(bytes.data() + kCodecAt);
  const auto flags = load<std::uint8_t>(bytes.data() + kFlagsAt);
  if ((flags & ~kShuffleMask) != 0) return corrupt("frame flags 0x{:02x} are not known", flags);
  header.shuffle_width = flags == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(1u << flags);
  header.head_bytes = load<std::uint32_t>(bytes.data() + kHeadBytesAt);
  header.payload_bytes = load<std::uint64_t>(bytes.data() + kPayloadBytesAt);
  if (header.head_bytes > limits.head_bytes_max) {
    return overloaded("a {} frame has a head of {} bytes; at most {}", name_of(header.type),
                      header.head_bytes, limits.head_bytes_max);
  }
  if (header.payload_bytes > limits.payload_bytes_max) {
    return overloaded("a {} frame has a payload of {} bytes; at most {}", name_of(header.type),
                      header.payload_bytes, limits.payload_bytes_max);
  }
  return header;
}

}  // namespace w5xde
