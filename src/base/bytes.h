// Bytes and numbers: little-endian loads and stores, a reader that cannot run past the end, aligned memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "w5xde/result.h"

namespace w5xde {

// The formats are little-endian and the payloads are memory images; a big-endian port has to swap both.
static_assert(std::endian::native == std::endian::little, "WIIIIIDE runs on little-endian machines");

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// Wide enough for a cache line and every vector unit; all tensor memory starts at a multiple of it.
inline constexpr std::size_t kAlignment = 64;

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

// What may be copied byte by byte.
template <class T>
concept Plain = std::is_trivially_copyable_v<T>;

// A number as the formats have them. Not bool: a byte that is neither 0 nor 1 must not become one.
template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <Plain T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <Plain T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

inline Bytes bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Reads numbers off the front of a span. Past the end it gives zeros and remembers that: a decoder may ask
// exhausted() once at the end, but must ask before a count or a length sizes anything.
class ByteReader {
 public:
  explicit ByteReader(Bytes bytes) : rest_(bytes) {}

  template <Number T>
  T read() {
    if (rest_.size() < sizeof(T)) return fail<T>();
    T value = load<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return value;
  }

  // LEB128, at most ten bytes, shortest form only: one number has one encoding.
  std::uint64_t read_varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = read<std::uint8_t>();
      if (exhausted_) return 0;
      const std::uint64_t digit = byte & 0x7fu;
      if (shift == 63 && digit > 1) return fail<std::uint64_t>();
      value |= digit << shift;
      if ((byte & 0x80u) == 0) {
        if (byte == 0 && shift != 0) return fail<std::uint64_t>();
        return value;
      }
    }
    return fail<std::uint64_t>();
  }

  Bytes read_bytes(std::uint64_t count) {
    if (rest_.size() < count) return fail<Bytes>();
    const Bytes taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }

  Bytes rest() const { return rest_; }
  // True when a read went past the end or met a varint that is not one.
  bool exhausted() const { return exhausted_; }
  // True when every byte was read and none was missing.
  bool finished() const { return !exhausted_ && rest_.empty(); }

 private:
  template <class T>
  T fail() {
    exhausted_ = true;
    rest_ = {};
    return T{};
  }

  Bytes rest_;
  bool exhausted_ = false;
};

// Appends numbers to a vector that the caller owns and may reuse.
class ByteWriter {
 public:
  explicit ByteWriter(std::vector<std::byte>& out) : out_(out) {}

  template <Number T>
  void write(T value) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof(T));
    store(out_.data() + at, value);
  }

  void write_varint(std::uint64_t value) {
    while (value >= 0x80) {
      write(static_cast<std::uint8_t>(value | 0x80u));
      value >>= 7;
    }
    write(static_cast<std::uint8_t>(value));
  }

  void write_bytes(Bytes bytes) { out_.insert(out_.end(), bytes.begin(), bytes.end()); }

 private:
  std::vector<std::byte>& out_;
};

class SharedBlock;

// Owned memory aligned to kAlignment. Growing keeps nothing: it is a landing place, not a container.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size) { reserve_exactly(size); }
  // All of a block that processes share (base/shared_memory.h). Growing lets go of it.
  explicit AlignedBuffer(std::shared_ptr<SharedBlock> block);
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : memory_(std::move(other.memory_)), capacity_(std::exchange(other.capacity_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  // At least `size` bytes, contents undefined. Allocates only when it has to grow.
  MutableBytes take(std::size_t size) {
    if (size > capacity_) reserve_exactly(size);
    return {memory_.get(), size};
  }

  std::byte* data() { return memory_.get(); }
  const std::byte* data() const { return memory_.get(); }
  std::size_t capacity() const { return capacity_; }
  // The block that it is; null where the memory is this process's own.
  const std::shared_ptr<SharedBlock>& shared() const { return memory_.get_deleter().block; }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      if (!block) ::operator delete[](memory, std::align_val_t(kAlignment));
    }
    std::shared_ptr<SharedBlock> block;
  };

  void reserve_exactly(std::size_t size) {
    // Both, because the allocation below may throw: the buffer is then empty, and says so.
    memory_ = nullptr;
    memory_.get_deleter().block = nullptr;
    capacity_ = 0;
    memory_.reset(static_cast<std::byte*>(::operator new[](size, std::align_val_t(kAlignment))));
    capacity_ = size;
  }

  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t capacity_ = 0;
};

}  // namespace w5xde
