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
#include "payload/form.h"
#include "w5xde/result.h"
#include "wire/frame_writer.h"

namespace w5xde {

// Sends payloads through a lossless codec, and adds up what that cost. A payload that no codec makes smaller
// travels as it is.
class PayloadSender {
 public:
  PayloadSender(ThreadPool* pool, const Clock& clock) : pool_(pool), clock_(clock) {}

  // What of these tensors travels where that is less than they are.
  struct Section {
    Bytes bytes;
    std::shared_ptr<const void> keep;
  };
  // The codec that was asked for; or the policy chooses the one that pays on this connection. Neither: none.
  struct Lossless {
    const SectionCodec* fixed = nullptr;
    LosslessPolicy* policy = nullptr;
  };
  // The codec for a payload of `raw_bytes`.
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

}  // namespace w5xde
