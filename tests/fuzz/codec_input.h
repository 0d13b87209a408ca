// What the codec targets have in common. The codec libraries are not built with the sanitizers, so a read or
// write past the end of a span is caught by the machine instead: spans end where a page begins that nobody
// may touch.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "codec/lossless.h"

namespace w5xde::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

// Hands out spans that end at a forbidden page.
class FencedMemory {
 public:
  explicit FencedMemory(std::size_t bytes_max) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    size_ = align_up(bytes_max, page);
    void* memory = mmap(nullptr, size_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    require(memory != MAP_FAILED);
    start_ = static_cast<std::byte*>(memory);
    require(mprotect(start_ + size_, page, PROT_NONE) == 0);
  }
  FencedMemory(const FencedMemory&) = delete;
  FencedMemory& operator=(const FencedMemory&) = delete;

  MutableBytes take(std::size_t size) {
    require(size <= size_);
    return {start_ + (size_ - size), size};
  }

  Bytes copy_of(Bytes bytes) {
    const MutableBytes copy = take(bytes.size());
    std::ranges::copy(bytes, copy.begin());
    return copy;
  }

 private:
  std::byte* start_ = nullptr;  // kept for the life of the process
  std::size_t size_ = 0;
};

inline constexpr std::size_t kEncodedBytesMax = std::size_t{1} << 20;  // libFuzzer's largest input
inline constexpr std::size_t kRawBytesMax = std::size_t{1} << 16;

// One target's way through: decode what comes, and what could be decoded must survive another round trip.
// The input is a raw size (u16, little-endian) and a stream.
inline int decompress_one(LosslessKind kind, std::span<const std::uint8_t> input) {
  static FencedMemory encoded_memory(kEncodedBytesMax);
  static FencedMemory raw_memory(kRawBytesMax);
  static LosslessCompressor compressor;
  static LosslessDecompressor decompressor;

  ByteReader reader(std::as_bytes(input));
  const MutableBytes raw = raw_memory.take(reader.read<std::uint16_t>());
  if (reader.exhausted()) return 0;
  if (!decompressor.decompress(kind, encoded_memory.copy_of(reader.rest()), raw).ok()) return 0;

  std::vector<std::byte> again(2 * raw.size() + 64);
  again.resize(compressor.compress({kind, 1}, raw, again));
  std::vector<std::byte> back(raw.size());
  require(decompressor.decompress(kind, again, back).ok());
  require(std::ranges::equal(back, raw));
  return 0;
}

}  // namespace w5xde::fuzz
