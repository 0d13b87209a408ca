#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/limits.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"
#include "wire/frame.h"

namespace w5xde {

// A frame to send. Head and views are copied; the memory that the views look at is not, and `keep` holds it
// until the last byte is written.
struct OutgoingFrame {
  FrameType type = FrameType::tensors;
  std::uint8_t codec = 0;
  std::uint8_t shuffle_width = 0;
  Bytes head = {};
  std::span<const TensorView> payload = {};  // each starts at a multiple of kPayloadAlignment; may be strided
  std::shared_ptr<const void> keep = nullptr;
  bool urgent = false;  // ahead of every frame that is not begun: heartbeats must not wait behind gradients
  // Shared by frames with the same head and payload: the first that is hashed fills it in for the others.
  std::shared_ptr<std::optional<std::uint64_t>> checksum = nullptr;
};

// What frames are sent through: a connection, without its I/O.
class FrameSender {
 public:
  virtual ~FrameSender() = default;
  // Queues a frame. `overloaded` when the queue is full, `disconnected` when closed.
  virtual Status send(const OutgoingFrame& frame) = 0;
  // How fast the link takes what is sent; 0 while not known.
  virtual double outgoing_bytes_per_second() = 0;
};

// The send queue of a connection, without I/O: frames in, pieces of memory to write out. Nothing is
// concatenated, each byte is hashed just before it is handed out, strided tensors are gathered a block at a
// time. Allocates nothing once the queue has been as deep as it gets.
class FrameWriter {
 public:
  explicit FrameWriter(const Limits& limits);

  // `overloaded` when the queue has no room for it; the frame is then not queued.
  Status push(const OutgoingFrame& frame);

  // The next bytes to write, in order; empty when all is written. The same until consume().
  std::span<const iovec> stage();
  // The first `count` bytes of stage() are written.
  void consume(std::size_t count);

  void set_limits(const Limits& limits) { limits_ = limits; }

  bool empty() const { return queued_frames_ == 0; }
  std::uint64_t queued_frames() const { return queued_frames_; }
  std::uint64_t queued_bytes() const { return queued_bytes_; }
  std::uint64_t queued_urgent() const { return urgent_.size(); }  // of which none is begun

 private:
  struct Queued {
    std::vector<std::byte> front;  // header and head
    std::vector<TensorView> payload;
    std::array<std::byte, kFrameChecksumBytes> checksum{};
    std::shared_ptr<const void> keep;
    std::shared_ptr<std::optional<std::uint64_t>> shared_checksum;
    std::uint64_t bytes = 0;
    std::uint64_t written_when = 0;  // this frame is written when total_written_ is that; set once staged
  };

  enum class Phase { front, payload, checksum };

  bool begin_frame();
  // Stages the next piece of the current frame; false when it must wait for room.
  bool stage_piece(Queued& frame);
  bool stage_payload(const Queued& frame);
  void hash(Bytes piece);
  void add(Bytes piece);
  void finish_written();

  Limits limits_;
  // A frame moves from list to list with its node, so that nothing is allocated.
  std::list<Queued> urgent_, queue_;
  std::list<Queued> current_;  // being staged: one, or none
  std::list<Queued> staged_;   // staged whole, not yet written whole
  std::list<Queued> spare_;    // to be used again

  Phase phase_ = Phase::front;
  std::size_t part_ = 0;           // of the current frame's payload
  std::uint64_t part_offset_ = 0;  // staged bytes of that part
  std::uint64_t payload_offset_ = 0;
  Hash64 hash_;
  bool hashed_before_ = false;  // the current frame's checksum is known from another frame
  AlignedBuffer gather_;

  std::array<iovec, 64> pieces_{};
  std::size_t pieces_begin_ = 0;
  std::size_t pieces_end_ = 0;
  std::size_t staged_bytes_ = 0;

  std::uint64_t total_staged_ = 0;
  std::uint64_t total_written_ = 0;
  std::uint64_t queued_frames_ = 0;
  std::uint64_t queued_bytes_ = 0;
};

}  // namespace w5xde
