#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/limits.h"
#include "codec/policy.h"
#include "learn/reduction.h"
#include "net/connection.h"
#include "node/coded_answers.h"
#include "payload/block_encoder.h"
#include "payload/encoding.h"
#include "payload/receiver.h"
#include "payload/sender.h"
#include "wire/messages.h"

namespace w5xde {

// How a node's answers leave it: in the form that the lease asks for, whole or in parts. Also has the error
// feedback, which goes to the coordinator when it asks and when the node leaves. Loop thread only.
class AnswerSender {
 public:
  // `receiver` decodes feedback; what it took so far is reported with the next answer.
  AnswerSender(const BlockShape& shape, float momentum, Connection& connection, PayloadReceiver& receiver,
               const Clock& clock);

  // Adds the time that codecs took since the last answer. `values` are a gradient's floats, or null.
  Status send(Contribution contribution, const Encoding& form, Reduction::Buffer values);

  // Error feedback of another node, or an empty frame that asks for this node's.
  Result<MutableBytes> place_feedback(const FrameHeader& header, Bytes head);
  Status received_feedback(const FrameHeader& header, Bytes head, Bytes payload);
  // An answer that does not count is taken back from the feedback.
  void judge(const Verdict& verdict) { coded_answers_.judge(verdict.lease_id, verdict.counted); }
  // Some answer's verdict is not here yet: the feedback may still change.
  bool unjudged() const { return coded_answers_.unjudged(); }
  // The node leaves, and hands over its feedback if it has any.
  Status send_last_feedback();

  // Memory of answers that are written.
  std::vector<Reduction::Buffer> take_returned() { return std::exchange(*returned_, {}); }

 private:
  Status send_parts(Contribution contribution, const Encoding& form, Reduction::Buffer values);
  Formed encode_block(const Encoding& form, const Contribution& contribution, std::span<const float> block);
  Status send_feedback(std::span<const float> floats, bool leaving);
  std::uint64_t take_codec_ns();

  BlockShape shape_;
  Connection& connection_;
  PayloadReceiver& receiver_;
  const Clock& clock_;
  const Limits limits_;
  PayloadSender sender_;
  BlockEncoder encoder_;
  CodedAnswers coded_answers_;
  std::vector<LosslessPolicy> policies_;             // one for each part of an answer
  Duration gradient_coding_ = Duration::zero();      // so far
  Duration codec_time_reported_ = Duration::zero();  // with earlier answers
  AlignedBuffer feedback_;                           // another node's, arriving
  std::uint32_t taken_over_ = 0;                     // how many of those were added to this node's own
  Head head_;
  // Shared with the frames that will return their memory here.
  std::shared_ptr<std::vector<Reduction::Buffer>> returned_;
};

}  // namespace w5xde
