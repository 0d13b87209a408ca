// Lossless codecs: bytes in, fewer bytes out, the same bytes back. Which codec and level pays is policy's
// business; whether bytes arrived unharmed is the frame checksum's. What is promised here is that no stream,
// however made, can write outside the memory given for it or make a library allocate beyond what that memory
// justifies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "w5xde/result.h"

namespace w5xde {

// The number is what a frame header's codec byte carries.
enum class LosslessKind : std::uint8_t {
  none = 0,
  zlib = 1,       // RFC 1950
  lz4 = 2,        // one bare block
  lz4_frame = 3,  // one frame that declares its content size
  zstd = 4,       // one frame that declares its content size (RFC 8878)
};

// Whether a codec byte off the wire names a LosslessKind.
constexpr bool is_known(std::uint8_t kind) {
  return kind <= static_cast<std::uint8_t>(LosslessKind::zstd);
}

// "lz4-frame"; "unknown" for a kind that is not one.
std::string_view name_of(LosslessKind kind);

struct LosslessCodec {
  LosslessKind kind = LosslessKind::none;
  // zlib 1…9; lz4 and lz4-frame: acceleration 1…65537; zstd 1…19, or -7…-1 for its fast levels; none: 0.
  int level = 0;

  bool operator==(const LosslessCodec&) const = default;
};

// "none", "zlib:6", "lz4:1", "lz4-frame", "zstd:-3"; without a level, the codec's usual one.
Result<LosslessCodec> parse_lossless(std::string_view text);

// What parse_lossless reads back as the same codec.
std::string to_string(LosslessCodec codec);

// Compresses one stream at a time, any codec and level. Keeps each library's working memory from its first
// use on, so that the hot path allocates nothing once warm. One thread at a time.
class LosslessCompressor {
 public:
  LosslessCompressor();
  ~LosslessCompressor();
  LosslessCompressor(LosslessCompressor&&) noexcept;
  LosslessCompressor& operator=(LosslessCompressor&&) noexcept;

  // Bytes written to `out`, or 0 when the stream does not fit there: give it less room than `raw` and 0 says
  // that compressing is not worth it. The stream depends on nothing but the arguments. A level out of range
  // counts as the nearest one in it. `none` copies.
  std::size_t compress(LosslessCodec codec, Bytes raw, MutableBytes out);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

// The way back. Its working memory is kept likewise, and is small and fixed but for lz4 frames, whose block
// buffers grow with the largest `raw` so far, to 9 MiB at most. One thread at a time.
class LosslessDecompressor {
 public:
  LosslessDecompressor();
  ~LosslessDecompressor();
  LosslessDecompressor(LosslessDecompressor&&) noexcept;
  LosslessDecompressor& operator=(LosslessDecompressor&&) noexcept;

  // Fills `raw` exactly, from all of `encoded`; anything else is corrupt, and what `raw` then holds is
  // undefined.
  Status decompress(LosslessKind kind, Bytes encoded, MutableBytes raw);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace w5xde
