// Frames for tests: whole ones as bytes, and a sink that keeps what it gets.
#pragma once

#include <list>
#include <vector>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/frame_reader.h"
#include "wire/frame_writer.h"

namespace w5xde {

// The bytes of a frame as they travel.
std::vector<std::byte> bytes_of_frame(const OutgoingFrame& frame);

struct ReceivedFrame {
  FrameHeader header;
  std::vector<std::byte> head;
  std::vector<std::byte> payload;
};

// Gives every payload memory of its own and keeps every frame.
class KeepingSink : public FrameSink {
 public:
  Result<MutableBytes> place(const FrameHeader& header, Bytes head) override;
  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override;

  std::list<ReceivedFrame> frames;
  std::vector<std::byte> landing;
};

// Reads all of `bytes`, at most `piece` at a time.
Status feed(FrameReader& reader, Bytes bytes, std::size_t piece);

}  // namespace w5xde
