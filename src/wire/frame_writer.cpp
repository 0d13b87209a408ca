#include "wire/frame_writer.h"

#include <algorithm>
#include <cassert>

#include "base/errors.h"
#include "wire/tensor_list.h"

namespace w5xde {

namespace {

// Handed to the socket at a time: enough to be worth a system call, little enough to be in the cache from
// hashing it.
// Measured: with half of it loopback streams lose a third of their rate to system calls, with twice it a
// tenth to the cache.
constexpr std::size_t kStageBytes = 512 * kKiB;

constexpr std::array<std::byte, kPayloadAlignment> kZeros{};

std::uint64_t padding_before(std::uint64_t payload_offset) {
  return align_up(payload_offset, kPayloadAlignment) - payload_offset;
}

}  // namespace

FrameWriter::FrameWriter(const Limits& limits) : limits_(limits) {}

Status FrameWriter::push(const OutgoingFrame& frame) {
  const FrameHeader header{.type = frame.type,
                           .codec = frame.codec,
                           .shuffle_width = frame.shuffle_width,
                           .head_bytes = static_cast<std::uint32_t>(frame.head.size()),
                           .payload_bytes = payload_bytes_of(frame.payload)};
  const std::uint64_t bytes = header.frame_bytes();
  if (queued_frames_ >= limits_.send_queue_frames_max || bytes > limits_.send_queue_bytes_max ||
      queued_bytes_ > limits_.send_queue_bytes_max - bytes) {
    return overloaded("the send queue holds {} frames of {} bytes and has no room for {} more",
                      queued_frames_, queued_bytes_, bytes);
  }
  if (spare_.empty()) spare_.emplace_back();
  Queued& queued = spare_.front();
  const FrameHeaderBytes header_bytes = encode_frame_header(header);
  queued.front.assign(header_bytes.begin(), header_bytes.end());
  queued.front.insert(queued.front.end(), frame.head.begin(), frame.head.end());
  queued.payload.assign(frame.payload.begin(), frame.payload.end());
  queued.keep = frame.keep;
  queued.shared_checksum = frame.checksum;
  queued.bytes = bytes;
  std::list<Queued>& queue = frame.urgent ? urgent_ : queue_;
  queue.splice(queue.end(), spare_, spare_.begin());
  ++queued_frames_;
  queued_bytes_ += bytes;
  return {};
}

std::span<const iovec> FrameWriter::stage() {
  if (pieces_begin_ == pieces_end_) pieces_begin_ = pieces_end_ = 0;
  while (staged_bytes_ < kStageBytes && pieces_end_ < pieces_.size()) {
    if (current_.empty() && !begin_frame()) break;
    if (!stage_piece(current_.front())) break;
  }
  return std::span(pieces_).subspan(pieces_begin_, pieces_end_ - pieces_begin_);
}

bool FrameWriter::begin_frame() {
  std::list<Queued>& queue = urgent_.empty() ? queue_ : urgent_;
  if (queue.empty()) return false;
  current_.splice(current_.end(), queue, queue.begin());
  const auto& known = current_.front().shared_checksum;
  hashed_before_ = known && known->has_value();
  phase_ = Phase::front;
  part_ = 0;
  part_offset_ = 0;
  payload_offset_ = 0;
  hash_.reset();
  return true;
}

void FrameWriter::hash(Bytes piece) {
  if (!hashed_before_) hash_.update(piece);
}

bool FrameWriter::stage_piece(Queued& frame) {
  switch (phase_) {
    case Phase::front:
      // The header carries a checksum of its own; the frame's covers what comes after it.
      hash(Bytes(frame.front).subspan(kFrameHeaderBytes));
      add(frame.front);
      phase_ = Phase::payload;
      return true;
    case Phase::payload:
      if (part_ < frame.payload.size()) return stage_payload(frame);
      phase_ = Phase::checksum;
      return true;
    case Phase::checksum:
      store(frame.checksum.data(), hashed_before_ ? **frame.shared_checksum : hash_.digest());
      if (frame.shared_checksum && !hashed_before_) *frame.shared_checksum = hash_.digest();
      add(frame.checksum);
      frame.written_when = total_staged_;
      staged_.splice(staged_.end(), current_);
      return true;
  }
  return false;
}

bool FrameWriter::stage_payload(const Queued& frame) {
  const TensorView& tensor = frame.payload[part_];
  const std::uint64_t size = tensor.byte_count();
  if (part_offset_ == 0) {
    if (const std::uint64_t padding = padding_before(payload_offset_); padding != 0) {
      const Bytes zeros = Bytes(kZeros).first(padding);
      hash(zeros);
      add(zeros);
      payload_offset_ += padding;
      return true;
    }
  }
  if (part_offset_ < size) {
    Bytes piece;
    if (tensor.contiguous()) {
      piece = tensor.bytes().subspan(part_offset_, std::min<std::uint64_t>(size - part_offset_, kStageBytes));
    } else {
      // One block at a time: the last one must be written before its memory is used again.
      if (pieces_begin_ != pieces_end_) return false;
      static_assert(Limits::kGatherBytes % 16 == 0, "a block holds whole elements of every dtype");
      const MutableBytes block =
          gather_.take(Limits::kGatherBytes)
              .first(std::min<std::uint64_t>(size - part_offset_, Limits::kGatherBytes));
      tensor.gather(part_offset_ / size_of(tensor.dtype()), block);
      piece = block;
    }
    hash(piece);
    add(piece);
    part_offset_ += piece.size();
    payload_offset_ += piece.size();
  }
  if (part_offset_ == size) {
    ++part_;
    part_offset_ = 0;
  }
  return true;
}

void FrameWriter::add(Bytes piece) {
  if (piece.empty()) return;
  pieces_[pieces_end_++] = {const_cast<std::byte*>(piece.data()), piece.size()};
  staged_bytes_ += piece.size();
  total_staged_ += piece.size();
}

void FrameWriter::consume(std::size_t count) {
  assert(count <= staged_bytes_);
  staged_bytes_ -= count;
  total_written_ += count;
  while (count != 0) {
    iovec& piece = pieces_[pieces_begin_];
    const std::size_t taken = std::min(count, piece.iov_len);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + taken;
    piece.iov_len -= taken;
    count -= taken;
    if (piece.iov_len == 0) ++pieces_begin_;
  }
  finish_written();
}

void FrameWriter::finish_written() {
  while (!staged_.empty() && staged_.front().written_when <= total_written_) {
    Queued& done = staged_.front();
    --queued_frames_;
    queued_bytes_ -= done.bytes;
    done.keep.reset();
    done.shared_checksum.reset();
    done.payload.clear();
    // A large head is rare; its memory is not kept for the next small one.
    if (done.front.capacity() > Limits::kQueuedFrameBytes) {
      staged_.pop_front();
    } else {
      spare_.splice(spare_.begin(), staged_, staged_.begin());
    }
  }
}

}  // namespace w5xde
