#include "wire/frame_reader.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/errors.h"

namespace w5xde {

namespace {

// A read that large is still in the cache when it is hashed.
constexpr std::size_t kReadBytes = 512 * kKiB;

// Below this, a copy out of the staging buffer is cheaper than a system call of its own.
constexpr std::size_t kDirectBytesMin = 4 * kKiB;

// What may be staged behind a payload that is read directly: the next header and head, but little of the next
// payload, which is to land directly too.
constexpr std::size_t kStagedBehindBytes = 2 * kKiB;

}  // namespace

FrameReader::FrameReader(const Limits& limits, FrameSink& sink)
    : limits_(limits), sink_(sink), staging_(Limits::kStagingBytes) {}

std::span<const iovec> FrameReader::space(std::size_t bytes_max) {
  assert(staged_begin_ == staged_end_ && !rest_.empty());
  staged_begin_ = staged_end_ = 0;
  if (bytes_max == 0) bytes_max = kReadBytes;
  if (rest_.size() < kDirectBytesMin) {
    direct_ = 0;
    space_[0] = {staging_.data(), std::min(staging_.size(), bytes_max)};
    return std::span(space_).first(1);
  }
  direct_ = std::min(rest_.size(), bytes_max);
  // What follows the destination may be staged only if the destination is filled to its end.
  const std::size_t behind = direct_ == rest_.size() ? std::min(kStagedBehindBytes, bytes_max - direct_) : 0;
  space_[0] = {rest_.data(), direct_};
  space_[1] = {staging_.data(), behind};
  return std::span(space_).first(behind == 0 ? 1 : 2);
}

Status FrameReader::advance(std::size_t count) {
  const std::size_t direct = std::min(count, direct_);
  direct_ = 0;
  fill(direct);
  staged_end_ = count - direct;
  for (;;) {
    while (rest_.empty()) W5XDE_CHECK(next_phase());
    const std::size_t staged = std::min(staged_end_ - staged_begin_, rest_.size());
    if (staged == 0) return {};
    std::memcpy(rest_.data(), staging_.data() + staged_begin_, staged);
    staged_begin_ += staged;
    fill(staged);
  }
}

// The next `count` bytes of the phase's destination have arrived.
void FrameReader::fill(std::size_t count) {
  if (phase_ == Phase::head || phase_ == Phase::payload) hash_.update(rest_.first(count));
  rest_ = rest_.subspan(count);
  frame_bytes_pending_ += count;
}

Status FrameReader::next_phase() {
  switch (phase_) {
    case Phase::header:
      return begin_head();
    case Phase::head:
      return begin_payload();
    case Phase::payload:
      phase_ = Phase::checksum;
      rest_ = checksum_;
      return {};
    case Phase::checksum:
      return finish_frame();
  }
  return {};
}

Status FrameReader::begin_head() {
  W5XDE_TRY(header_, decode_frame_header(header_bytes_, limits_));
  head_.resize(header_.head_bytes);
  hash_.reset();
  phase_ = Phase::head;
  rest_ = head_;
  return {};
}

Status FrameReader::begin_payload() {
  payload_ = {};
  if (header_.payload_bytes != 0) {
    W5XDE_TRY(payload_, sink_.place(header_, head_));
    assert(payload_.size() == header_.payload_bytes);
  }
  phase_ = Phase::payload;
  rest_ = payload_;
  return {};
}

Status FrameReader::finish_frame() {
  const auto claimed = load<std::uint64_t>(checksum_.data());
  const std::uint64_t computed = hash_.digest();
  if (claimed != computed) {
    return corrupt("a {} frame's checksum is {:016x}, its bytes give {:016x}", name_of(header_.type), claimed,
                   computed);
  }
  phase_ = Phase::header;
  rest_ = header_bytes_;
  ++frames_received_;
  frame_bytes_pending_ = 0;
  return sink_.received(header_, head_, payload_);
}

}  // namespace w5xde
