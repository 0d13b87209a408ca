// Payloads through their form and a lossless codec, and what that cost. A payload that no codec makes smaller
// travels as it is. Where the choice of codec is left open, a policy learns from what each payload came to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "codec/policy.h"
#include "codec/section.h"
#include "payload/payload_form.h"
#include "w5xde/result.h"
#include "wire/frame_writer.h"

namespace w5xde {

struct PayloadStats {
  std::uint64_t raw_bytes = 0;
  std::uint64_t wire_bytes = 0;
  Duration busy = Duration::zero();
};

class PayloadSender {
 public:
  PayloadSender(ThreadPool* pool, const Clock& clock) : pool_(pool), clock_(clock) {}

  // What of these tensors travels where that is less than they are.
  struct Section {
    Bytes bytes;
    std::shared_ptr<const void> keep;
  };
  // With the codec that was asked for, or with the one that pays on this connection.
  struct Lossless {
    SectionCodec codec = {};
    LosslessPolicy* policy = nullptr;  // decides, where there is one
  };
  // What the policy has decided, for a payload of so many bytes.
  static SectionCodec choose(const Lossless& lossless, std::uint64_t raw_bytes, FrameSender& link);
  std::optional<Section> encode(std::span<const TensorView> payload, const SectionCodec& codec,
                                LosslessPolicy* policy);

  // Sends a frame with these tensors, or with what they were formed into; `keep` holds their memory.
  struct Payload {
    std::span<const TensorView> tensors;
    Formed formed = {};
    std::shared_ptr<const void> keep = nullptr;
    Lossless lossless = {};
  };
  Status send(FrameSender& link, FrameType type, Bytes head, Payload payload);
  const PayloadStats& stats() const { return stats_; }
  PayloadStats& stats() { return stats_; }

 private:
  ThreadPool* pool_;
  const Clock& clock_;
  SectionEncoder encoder_;
  AlignedBuffer joined_;  // tensors side by side, for the codec
  PayloadStats stats_;
};

class PayloadReceiver {
 public:
  PayloadReceiver(ThreadPool* pool, const Clock& clock) : pool_(pool), clock_(clock) {}

  // For Connection::Owner::place: where the payload lands that, decoded, belongs in the target. corrupt when
  // it has another length.
  Result<MutableBytes> place(const FrameHeader& header, const Coding& coding, const Target& target);
  // For received: the target holds the decoded payload afterwards.
  Status finish(const FrameHeader& header, Bytes payload, const Coding& coding, const Target& target);
  const PayloadStats& stats() const { return stats_; }

 private:
  ThreadPool* pool_;
  const Clock& clock_;
  SectionDecoder decoder_;
  AlignedBuffer encoded_;
  AlignedBuffer formed_;
  PayloadStats stats_;
};

}  // namespace w5xde
