// Payloads through the lossless codec of their direction, and what that cost. A payload that does not get
// smaller travels as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "codec/section.h"
#include "net/connection.h"
#include "w5xde/result.h"

namespace w5xde {

struct PayloadStats {
  std::uint64_t raw_bytes = 0;
  std::uint64_t wire_bytes = 0;
  Duration busy = Duration::zero();
};

class PayloadSender {
 public:
  PayloadSender(const SectionCodec& codec, ThreadPool* pool) : codec_(codec), pool_(pool) {}

  // What of these tensors travels where that is less than they are.
  struct Section {
    Bytes bytes;
    std::shared_ptr<const void> keep;
  };
  std::optional<Section> encode(std::span<const TensorView> payload);

  // Sends a frame with these tensors; `keep` holds their memory.
  Status send(Connection& connection, FrameType type, Bytes head, std::span<const TensorView> payload,
              std::shared_ptr<const void> keep);
  const PayloadStats& stats() const { return stats_; }
  PayloadStats& stats() { return stats_; }

 private:
  SectionCodec codec_;
  ThreadPool* pool_;
  SectionEncoder encoder_;
  AlignedBuffer joined_;  // tensors side by side, for the codec
  PayloadStats stats_;
};

class PayloadReceiver {
 public:
  explicit PayloadReceiver(ThreadPool* pool) : pool_(pool) {}

  // For Connection::Owner::place: where the payload lands that, decoded, belongs in `raw`. corrupt when it
  // has another length.
  Result<MutableBytes> place(const FrameHeader& header, MutableBytes raw);
  // For received: `raw` holds the decoded payload afterwards.
  Status finish(const FrameHeader& header, Bytes payload, MutableBytes raw);
  const PayloadStats& stats() const { return stats_; }

 private:
  ThreadPool* pool_;
  SectionDecoder decoder_;
  AlignedBuffer encoded_;
  PayloadStats stats_;
};

}  // namespace w5xde
