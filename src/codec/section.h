// An encoded section: the payload of a frame, cut into chunks, byte-shuffled and compressed, chunks in
// parallel.
//
//   offset  bytes     field
//   0       1         chunk_log2, 12…24: each chunk holds 2^chunk_log2 raw bytes, the last one what is left
//   1       4 × n     encoded size of each chunk, u32, little-endian
//   1 + 4n  the rest  the chunks, back to back
//
// n follows from the raw size, which the receiver knows from the frame's tensor descriptors; the codec and
// the shuffle width stand in the frame's header. So nothing is declared twice. A chunk whose encoded size
// equals its raw size is stored: the raw bytes, unshuffled. A smaller one is compressed: shuffle(raw, width),
// then one stream of the codec, which ends where the chunk ends. No chunk is larger than its raw bytes, and
// none is empty. A section of nothing is its first byte alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/thread_pool.h"
#include "codec/lossless.h"
#include "w5xde/result.h"

namespace w5xde {

inline constexpr std::uint8_t kChunkLog2Min = 12;
inline constexpr std::uint8_t kChunkLog2Max = 24;
inline constexpr std::uint8_t kChunkLog2Default = 18;

struct SectionCodec {
  LosslessCodec lossless;
  std::uint8_t shuffle_width = 0;  // is_shuffle_width()
  std::uint8_t chunk_log2 = kChunkLog2Default;

  bool operator==(const SectionCodec&) const = default;
};

// How many chunks a section of `raw_bytes` has.
constexpr std::uint64_t chunk_count(std::uint64_t raw_bytes, std::uint8_t chunk_log2) {
  return (raw_bytes >> chunk_log2) + ((raw_bytes & ((1u << chunk_log2) - 1)) != 0 ? 1 : 0);
}

// How long a section of `raw_bytes` can get. The default holds whatever chunk size its sender chose, so a
// receiver may refuse what is longer before it takes memory for it.
constexpr std::uint64_t section_bytes_max(std::uint64_t raw_bytes, std::uint8_t chunk_log2 = kChunkLog2Min) {
  return 1 + sizeof(std::uint32_t) * chunk_count(raw_bytes, chunk_log2) + raw_bytes;
}

// Both directions keep working memory per lane of the pool (a chunk, and the library's contexts) and allocate
// nothing of their own once it has grown to what their inputs need. A section of one chunk, or without a
// pool, is worked on by the calling thread alone. One call at a time.

class SectionEncoder {
 public:
  SectionEncoder();
  ~SectionEncoder();

  // One for each chunk, 0 for one that is stored without trying to compress it. Empty: all are tried.
  using Tried = std::span<const std::uint8_t>;

  // The section, valid until the next call. Its bytes depend on `raw`, `codec` and `tried` only, never on the
  // pool.
  Bytes encode(Bytes raw, const SectionCodec& codec, ThreadPool* pool, Tried tried = {});

  // The same into the caller's memory, which has section_bytes_max(raw.size(), codec.chunk_log2) bytes and
  // does not overlap `raw`. Returns the part that was filled.
  Bytes encode_into(MutableBytes out, Bytes raw, const SectionCodec& codec, ThreadPool* pool,
                    Tried tried = {});

  // The encoded size of each chunk of the last section: what a policy learns from.
  std::span<const std::uint32_t> chunk_bytes() const { return chunk_bytes_; }

 private:
  struct Lane;
  std::vector<Lane> lanes_;
  std::vector<std::uint32_t> chunk_bytes_;
  AlignedBuffer out_;
};

class SectionDecoder {
 public:
  SectionDecoder();
  ~SectionDecoder();

  // Fills `raw` exactly, or says what is wrong; what `raw` then holds is undefined. The whole table is proven
  // before a chunk is touched. With several bad chunks it is the first of them that is told, whatever the
  // pool.
  Status decode(Bytes encoded, LosslessKind kind, std::uint8_t shuffle_width, MutableBytes raw,
                ThreadPool* pool);

 private:
  struct Lane;
  struct Job;
  Status decode_chunks(const Job& job, ThreadPool* pool);

  std::vector<Lane> lanes_;
  std::vector<std::size_t> chunk_ends_;  // in the section being decoded
};

}  // namespace w5xde
