#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/limits.h"
#include "w5xde/result.h"
#include "wire/frame.h"

namespace w5xde {

// Who receives frames.
class FrameSink {
 public:
  virtual ~FrameSink() = default;

  // The header is proven and the head is complete (but its checksum comes last, so its words are checked
  // against limits only): say where the payload lands. The memory is header.payload_bytes long and stays
  // until received() or the end of the reader. Not asked for a payload of 0 bytes.
  virtual Result<MutableBytes> place(const FrameHeader& header, Bytes head) = 0;

  // The frame is whole and its checksum fits.
  virtual Status received(const FrameHeader& header, Bytes head, MutableBytes payload) = 0;
};

// Turns a stream of bytes into frames, without I/O: whoever reads asks for space(), puts bytes there, and
// says how many came. A large payload goes from the socket straight to where the sink placed it; small frames
// arrive many at a time in a staging buffer and are copied once. After an error the reader cannot be used any
// more.
class FrameReader {
 public:
  FrameReader(const Limits& limits, FrameSink& sink);

  // Where the next bytes go, in order: at most `bytes_max`; 0: as many as are best read at once. Never empty;
  // valid until advance().
  std::span<const iovec> space(std::size_t bytes_max = 0);
  // `count` bytes were put into space(). Calls the sink for every frame that they complete.
  Status advance(std::size_t count);

  // From the next frame on.
  void set_limits(const Limits& limits) { limits_ = limits; }

  std::uint64_t frames_received() const { return frames_received_; }
  // How much of a frame that is not complete has arrived; 0 between frames.
  std::uint64_t frame_bytes_pending() const { return frame_bytes_pending_; }

 private:
  enum class Phase { header, head, payload, checksum };

  void fill(std::size_t count);
  Status next_phase();
  Status begin_head();
  Status begin_payload();
  Status finish_frame();

  Limits limits_;
  FrameSink& sink_;

  Phase phase_ = Phase::header;
  FrameHeaderBytes header_bytes_{};
  MutableBytes rest_ = header_bytes_;  // of the phase's destination: what has not arrived yet
  FrameHeader header_;
  std::vector<std::byte> head_;
  MutableBytes payload_;
  std::array<std::byte, kFrameChecksumBytes> checksum_{};
  Hash64 hash_;

  std::vector<std::byte> staging_;
  std::size_t staged_begin_ = 0;
  std::size_t staged_end_ = 0;
  std::size_t direct_ = 0;  // how many bytes of the last space() were the destination itself
  std::array<iovec, 2> space_{};

  std::uint64_t frames_received_ = 0;
  std::uint64_t frame_bytes_pending_ = 0;
};

}  // namespace w5xde
