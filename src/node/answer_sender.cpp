#include "node/answer_sender.h"

#include "base/errors.h"

namespace w5xde {

AnswerSender::AnswerSender(const BlockShape& shape, float momentum, Connection& connection,
                           PayloadReceiver& receiver, const Clock& clock)
    : shape_(shape),
      connection_(connection),
      receiver_(receiver),
      clock_(clock),
      sender_(nullptr, clock),
      encoder_(shape, momentum),
      coded_answers_(encoder_.gradients()),
      returned_(std::make_shared<std::vector<Reduction::Buffer>>()) {}

Status AnswerSender::send(Contribution contribution, const Encoding& form, Reduction::Buffer values) {
  // A shared answer is where it belongs already.
  if (values && form.form != Form::shared)
    return send_parts(std::move(contribution), form, std::move(values));
  if (values) {
    contribution.coding = {.form = Form::shared};
    contribution.tensors = {{DType::f32, Shape{static_cast<std::int64_t>(shape_.floats)}}};
  }
  contribution.codec_ns = take_codec_ns();
  head_.clear();
  encode(contribution, head_);
  return connection_.send({.type = FrameType::contribution, .head = head_});
}

Status AnswerSender::send_parts(Contribution contribution, const Encoding& form, Reduction::Buffer values) {
  const std::span<const float> block(reinterpret_cast<const float*>(values->data()), shape_.floats);
  const Formed whole = encode_block(form, contribution, block);
  contribution.codec_ns = take_codec_ns();
  // When the last byte is written, the memory returns.
  const std::shared_ptr<AlignedBuffer> keep(
      values.release(), [returned = returned_](AlignedBuffer* buffer) { returned->emplace_back(buffer); });
  FloatRange part = part_at(0, form.part_floats, shape_);
  for (std::size_t number = 0; part.count > 0;
       ++number, part = part_at(part.end(), form.part_floats, shape_)) {
    if (policies_.size() == number) policies_.emplace_back();
    const bool in_parts = part.count < shape_.floats;
    Formed formed = in_parts && !whole.direct() ? part_of(whole, shape_, part) : whole;
    contribution.first_float = part.first;
    contribution.coding = formed.coding;
    contribution.tensors = {{DType::f32, Shape{static_cast<std::int64_t>(part.count)}}};
    head_.clear();
    encode(contribution, head_);
    const TensorView floats(std::as_bytes(block.subspan(part.first, part.count)), DType::f32,
                            contribution.tensors[0].shape);
    W5XDE_CHECK(sender_.send(connection_, FrameType::contribution, head_,
                             {.tensors = {&floats, 1},
                              .formed = std::move(formed),
                              .keep = keep,
                              .lossless = {form.fixed_lossless(), &policies_[number]}}));
  }
  return {};
}

Formed AnswerSender::encode_block(const Encoding& form, const Contribution& contribution,
                                  std::span<const float> block) {
  if (form.form == Form::direct) return {};
  const Instant begun = clock_.now();
  Formed formed;
  if (form.form == Form::generic) {
    const TensorView view(std::as_bytes(block), DType::f32, Shape{static_cast<std::int64_t>(block.size())});
    formed = form_generic({&view, 1});
  } else {
    // Answers through a codec without error feedback get no verdict.
    const bool same_step =
        form.has_feedback() && coded_answers_.begin(contribution.lease_id, contribution.step);
    formed = encoder_.encode(block, form.gradient, same_step);
  }
  gradient_coding_ += clock_.now() - begun;
  return formed;
}

std::uint64_t AnswerSender::take_codec_ns() {
  const Duration codecs = sender_.stats().busy + receiver_.stats().busy + gradient_coding_;
  return static_cast<std::uint64_t>((codecs - std::exchange(codec_time_reported_, codecs)).count());
}

Result<MutableBytes> AnswerSender::place_feedback(const FrameHeader& header, Bytes head) {
  W5XDE_TRY(const Feedback feedback, decode_feedback(head, limits_));
  const std::uint64_t floats = shape_.parameters->floats();
  const std::uint64_t bytes = feedback.tensors.empty() ? 0 : feedback.tensors[0].byte_count();
  if (bytes != floats * sizeof(float) && bytes != 2 * floats * sizeof(float))
    return corrupt("feedback of {} bytes for {} floats", bytes, floats);
  return receiver_.place(header, {}, {feedback_.take(bytes), feedback.tensors});
}

Status AnswerSender::received_feedback(const FrameHeader& header, Bytes head, Bytes payload) {
  W5XDE_TRY(const Feedback feedback, decode_feedback(head, limits_));
  if (feedback.tensors.empty()) {
    // The coordinator may judge answers while the copy travels; those that do not count must not be in it.
    const bool first = coded_answers_.copy_feedback(
        [this](std::span<const float> floats) { (void)send_feedback(floats, false); });
    return first ? Status() : corrupt("a second request for feedback before the first is answered");
  }
  if (payload.empty()) return corrupt("feedback without its floats");
  const MutableBytes raw(feedback_.data(), feedback.tensors[0].byte_count());
  W5XDE_CHECK(receiver_.finish(header, payload, {}, {raw, feedback.tensors}));
  ++taken_over_;
  encoder_.gradients().add_feedback({reinterpret_cast<const float*>(raw.data()), raw.size() / sizeof(float)});
  return {};
}

Status AnswerSender::send_last_feedback() {
  const std::span<const float> floats = encoder_.gradients().feedback();
  return floats.empty() ? Status() : send_feedback(floats, true);
}

Status AnswerSender::send_feedback(std::span<const float> floats, bool leaving) {
  Feedback feedback{.leaving = leaving, .taken_over = taken_over_};
  if (!floats.empty()) feedback.tensors = {{DType::f32, Shape{static_cast<std::int64_t>(floats.size())}}};
  Head head;
  encode(feedback, head);
  if (floats.empty()) return connection_.send({.type = FrameType::feedback, .head = head});
  // A copy, because the next answer changes the feedback.
  const auto copy = std::make_shared<std::vector<float>>(floats.begin(), floats.end());
  const TensorView view = TensorView::of_bytes(std::as_bytes(std::span(*copy)));
  return sender_.send(connection_, FrameType::feedback, head, {.tensors = {&view, 1}, .keep = copy});
}

}  // namespace w5xde
