#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/thread_pool.h"
#include "codec/section.h"
#include "payload/form.h"
#include "w5xde/result.h"
#include "wire/frame.h"

namespace w5xde {

// Decodes payloads into where they belong, and adds up what that cost.
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
