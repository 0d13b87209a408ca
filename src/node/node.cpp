#include "node/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "lease/tuning.h"
#include "w5xde/version.h"
#include "wire/hello.h"

namespace w5xde {

namespace {

// Leases shorter than this are computed on the loop's thread. Longer ones must not keep heartbeats waiting.
constexpr double kInlineSecondsMax = 0.015;
constexpr double kUnknownSeconds = 1;

}  // namespace

Node::Node(Loop& loop, NodeOptions options, const Log& log)
    : loop_(loop),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : loop),
      log_(log),
      sender_(nullptr, clock_),
      receiver_(nullptr, clock_),
      samples_(options_.sample_cache_bytes),
      returned_(std::make_shared<std::vector<Reduction::Buffer>>()),
      background_(loop.background()) {}

Node::~Node() {
  background_.reset();  // it computes with what goes next
  if (connection_) connection_->detach();
}

void Node::start(std::unique_ptr<Stream> stream) {
  connection_ = Connection::start(std::move(stream), *this, Limits::stranger());
  const Hello hello{.software = "w5xde " + std::string(kVersion), .name = options_.name, .role = "node"};
  encode(hello, head_);
  (void)send_cold(FrameType::hello, head_);
}

Status Node::send_cold(FrameType type, const Head& head) {
  return connection_->send({.type = type, .head = head});
}

void Node::closed(const Error& reason) {
  parted_ = parted_ || connection_->goodbye_received();
  reason_ = reason;
  leases_.clear();
}

void Node::leave(std::string reason) {
  leaving_ = std::move(reason);
  leases_.clear();
  if (!computing_) end_leave();
}

void Node::end_leave() {
  // What is handed over must have nothing in it of an answer that does not count.
  if (coded_answers_ && coded_answers_->unjudged() && connection_->open()) return;
  parted_ = true;
  if (connection_ && connection_->open()) {
    const auto floats = encoder_ ? encoder_->gradients().feedback() : std::span<const float>();
    (void)send_feedback(floats, true);  // if it cannot be sent, it is lost: the coordinator counts that
    connection_->close(disconnected(*leaving_));
  } else if (!reason_) {
    reason_ = ended_ = disconnected(*leaving_);
  }
}

Result<MutableBytes> Node::place(const FrameHeader& header, Bytes head) {
  switch (header.type) {
    case FrameType::parameters:
      return place_parameters(header, head);
    case FrameType::lease:
      return place_lease(header, head);
    case FrameType::model:
      return place_model(header, head);
    case FrameType::feedback:
      return place_feedback(header, head);
    default:
      if (header.payload_bytes == 0) return MutableBytes();
      return corrupt(fmt::format("a {} frame with a payload", name_of(header.type)));
  }
}

Status Node::received(const FrameHeader& header, Bytes head, MutableBytes payload) {
  // place() is asked for payloads only: without one, what it prepares is not there, or is of the frame
  // before.
  const bool carries = header.type == FrameType::parameters || header.type == FrameType::model;
  if (carries && payload.empty())
    return corrupt(fmt::format("a {} frame without a payload", name_of(header.type)));
  switch (header.type) {
    case FrameType::hello:
      return received_hello(head);
    case FrameType::offer:
      return received_offer(head);
    case FrameType::model:
      return received_model();
    case FrameType::parameters: {
      W5XDE_TRY(const bool whole, replica_->finish(header, payload, receiver_));
      if (whole) compute_next();
      return {};
    }
    case FrameType::lease:
      return received_lease(header, head, payload);
    case FrameType::feedback:
      return received_feedback(header, head, payload);
    case FrameType::verdict:
      return received_verdict(head);
    default:
      return corrupt(fmt::format("a coordinator does not send {} frames", name_of(header.type)));
  }
}

Result<MutableBytes> Node::place_parameters(const FrameHeader& header, Bytes head) {
  if (!replica_) return corrupt("parameters before the model");
  W5XDE_TRY(Parameters parameters, decode_parameters(head, limits_));
  return replica_->place(header, std::move(parameters), receiver_);
}

Result<MutableBytes> Node::place_lease(const FrameHeader& header, Bytes head) {
  if (!engine_) return corrupt("a lease before the model");
  W5XDE_TRY(arriving_.lease, decode_lease(head, limits_));
  const Lease& lease = arriving_.lease;
  W5XDE_TRY(const Encoding answer, from_wire(lease.answer));
  const std::uint64_t floats = replica_->shape().floats;
  if (answer.part_floats > 0 && (floats - 1) / answer.part_floats >= kPartsMax)
    return corrupt(fmt::format("parts of {} floats of {}", answer.part_floats, floats));
  const std::uint64_t bytes = payload_bytes_of(lease.tensors);
  W5XDE_CHECK(check_room_for(bytes));
  arriving_.payload = std::make_shared<AlignedBuffer>(bytes);
  return receiver_.place(header, lease.coding, {{arriving_.payload->data(), bytes}, lease.tensors});
}

// A coordinator has a few leases out to a node, of which each is small. The sum is made anew each time: there
// are few, and what is not kept cannot be wrong.
Status Node::check_room_for(std::uint64_t lease_bytes) const {
  std::uint64_t held = lease_bytes;
  for (const Pending& pending : leases_) held += payload_bytes_of(pending.lease.tensors);
  const std::uint64_t bytes_max = std::min(limits_.lease_bytes_held_max, options_.machine.memory_bytes / 2);
  if (held <= bytes_max && leases_.size() < limits_.leases_held_max) return {};
  return overloaded(fmt::format("{} leases with {} bytes of samples; there is room here for {} and {}",
                                leases_.size() + 1, held, limits_.leases_held_max, bytes_max));
}

Status Node::received_lease(const FrameHeader& header, Bytes head, Bytes payload) {
  // A lease whose samples are all kept has no payload, so that nobody was asked for a place.
  if (payload.empty() && !place_lease(header, head).ok()) return corrupt("a lease frame without a payload");
  Lease& lease = arriving_.lease;
  const MutableBytes raw(arriving_.payload->data(), payload_bytes_of(lease.tensors));
  W5XDE_CHECK(receiver_.finish(header, payload, lease.coding, {raw, lease.tensors}));
  W5XDE_CHECK(samples_.complete(lease, arriving_.payload, limits_));
  if (!leaving_) leases_.push_back(std::exchange(arriving_, {}));
  compute_next();
  return {};
}

Result<MutableBytes> Node::place_feedback(const FrameHeader& header, Bytes head) {
  if (!encoder_) return corrupt("feedback before the model");
  W5XDE_TRY(const Feedback feedback, decode_feedback(head, limits_));
  const std::uint64_t floats = engine_->description().parameters->floats();
  const std::uint64_t bytes = feedback.tensors.empty() ? 0 : feedback.tensors[0].byte_count();
  if (bytes != floats * sizeof(float) && bytes != 2 * floats * sizeof(float))
    return corrupt(fmt::format("feedback of {} bytes for {} floats", bytes, floats));
  return receiver_.place(header, {}, {feedback_.take(bytes), feedback.tensors});
}

Status Node::received_feedback(const FrameHeader& header, Bytes head, Bytes payload) {
  if (!encoder_) return corrupt("feedback before the model");
  W5XDE_TRY(const Feedback feedback, decode_feedback(head, limits_));
  if (feedback.tensors.empty()) {
    // Answers that the coordinator judges while the copy is on its way must not be in it if they do not
    // count.
    const bool first = coded_answers_->copy_feedback(
        [this](std::span<const float> floats) { (void)send_feedback(floats, false); });
    return first ? Status() : corrupt("a second request for feedback before the first is answered");
  }
  if (payload.empty()) return corrupt("feedback without its floats");
  const MutableBytes raw(feedback_.data(), feedback.tensors[0].byte_count());
  W5XDE_CHECK(receiver_.finish(header, payload, {}, {raw, feedback.tensors}));
  ++taken_over_;
  encoder_->gradients().add_feedback(
      {reinterpret_cast<const float*>(raw.data()), raw.size() / sizeof(float)});
  return {};
}

Status Node::received_verdict(Bytes head) {
  if (!coded_answers_) return corrupt("a verdict before the model");
  W5XDE_TRY(const Verdict verdict, decode_verdict(head));
  coded_answers_->judge(verdict.lease_id, verdict.counted);
  if (leaving_ && !computing_) end_leave();
  return {};
}

// A copy: the next contribution changes it.
Status Node::send_feedback(std::span<const float> floats, bool leaving) {
  Feedback feedback{.leaving = leaving, .taken_over = taken_over_};
  if (!floats.empty()) feedback.tensors = {{DType::f32, Shape{static_cast<std::int64_t>(floats.size())}}};
  if (leaving && floats.empty()) return {};
  Head head;
  encode(feedback, head);
  if (floats.empty()) return send_cold(FrameType::feedback, head);
  const auto copy = std::make_shared<std::vector<float>>(floats.begin(), floats.end());
  const TensorView view = TensorView::of_bytes(std::as_bytes(std::span(*copy)));
  return sender_.send(*connection_, FrameType::feedback, head, {.tensors = {&view, 1}, .keep = copy});
}

bool Node::computable(const Lease& lease) const {
  if (!replica_->state()) return false;
  return lease.version == replica_->version() || (offer_.newest_parameters && lease.work == Work::train);
}

// Looks for work from the loop, so that what was just sent is on its way first.
void Node::compute_next() {
  if (computing_ || compute_posted_ || leases_.empty()) return;
  compute_posted_ = true;
  loop_.post([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    compute_posted_ = false;
    if (computing_ || reason_) return;
    while (true) {
      const auto next = std::ranges::find_if(leases_, [&](const Pending& pending) {
        return computable(pending.lease) || pending.lease.version < replica_->version();
      });
      if (next == leases_.end()) return;
      Pending pending = std::move(*next);
      leases_.erase(next);
      if (computable(pending.lease)) return compute(std::move(pending));
      // The step went on without us; say so, as every lease is answered.
      if (!answer_void(pending.lease).ok()) return;
    }
  });
}

std::uint64_t Node::wait_until_now() {
  if (!waiting_since_) return 0;
  const Duration waited = loop_.now() - *waiting_since_;
  waiting_since_.reset();
  return static_cast<std::uint64_t>(std::max<Duration::rep>(waited.count(), 0));
}

void Node::compute(Pending pending) {
  computing_ = true;
  for (auto& buffer : *returned_) computation_->give_back(std::move(buffer));
  returned_->clear();
  wait_ns_ += wait_until_now();
  version_computed_ = replica_->version();
  const auto work = std::make_shared<Pending>(std::move(pending));
  const auto slot_seconds = slot_seconds_[static_cast<std::size_t>(work->lease.work)];
  const double seconds = slot_seconds.value_or(kUnknownSeconds) * work->lease.block.slot_count;
  const std::uint32_t lanes = seconds <= kOneLaneSeconds ? 1 : std::min(work->lease.lanes, lanes_max_);
  const auto run = [this, work, lanes, state = replica_->state()] {
    const Bytes payload(work->payload->data(), payload_bytes_of(work->lease.tensors));
    const std::span<const float> floats(reinterpret_cast<const float*>(state->data()),
                                        engine_->description().floats());
    return computation_->run(work->lease, payload, floats, lanes);
  };
  if (seconds / lanes <= kInlineSecondsMax) return computed(work->lease, run());
  const auto result = std::make_shared<std::optional<Result<Computed>>>();
  background_->run([run, result] { result->emplace(run()); },
                   [this, work, result] { computed(work->lease, std::move(**result)); });
}

void Node::computed(const Lease& lease, Result<Computed> result) {
  computing_ = false;
  waiting_since_ = loop_.now();
  if (reason_) return;
  Status status = result.ok() ? answer(lease, *result) : std::move(result).error();
  if (!status.ok()) return connection_->close(std::move(status).error());
  if (leaving_) return end_leave();
  compute_next();
}

Status Node::answer(const Lease& lease, Computed& result) {
  slot_seconds_[static_cast<std::size_t>(lease.work)] =
      seconds_of(result.busy) * result.lanes / lease.block.slot_count;
  slots_computed_ += lease.block.slot_count;
  Contribution contribution{.lease_id = lease.lease_id,
                            .step = lease.step,
                            .version = version_computed_,
                            .block = lease.block,
                            .samples = result.sums.samples,
                            .loss_sum = result.sums.loss,
                            .correct = result.correct,
                            .compute_ns = static_cast<std::uint64_t>(result.busy.count()),
                            .lanes = result.lanes,
                            .wait_ns = std::exchange(wait_ns_, 0),
                            .loop_ns = static_cast<std::uint64_t>(loop_.longest_task().count())};
  if (result.values) {
    W5XDE_TRY(const Encoding how, from_wire(lease.answer));
    return send_floats(std::move(contribution), how, std::move(result.values));
  }
  contribution.codec_ns = codec_until_now();
  head_.clear();
  encode(contribution, head_);
  return send_cold(FrameType::contribution, head_);
}

// In the form that the lease asks for, in one piece or in parts.
Status Node::send_floats(Contribution contribution, const Encoding& how, Reduction::Buffer values) {
  const BlockShape& shape = replica_->shape();
  const std::span<const float> block(reinterpret_cast<const float*>(values->data()), shape.floats);
  const Formed whole = form_answer(how, contribution, block);
  contribution.codec_ns = codec_until_now();
  // When the last byte is written the memory comes back.
  const std::shared_ptr<AlignedBuffer> keep(
      values.release(), [returned = returned_](AlignedBuffer* buffer) { returned->emplace_back(buffer); });
  FloatRange part = part_at(0, how.part_floats, shape);
  for (std::size_t number = 0; part.count > 0; ++number, part = part_at(part.end(), how.part_floats, shape)) {
    if (policies_.size() == number) policies_.emplace_back();
    const bool in_parts = part.count < shape.floats;
    Formed formed = in_parts && !whole.direct() ? part_of(whole, shape, part) : whole;
    contribution.first_float = part.first;
    contribution.coding = formed.coding;
    contribution.tensors = {{DType::f32, Shape{static_cast<std::int64_t>(part.count)}}};
    head_.clear();
    encode(contribution, head_);
    const TensorView floats(std::as_bytes(block.subspan(part.first, part.count)), DType::f32,
                            contribution.tensors[0].shape);
    W5XDE_CHECK(sender_.send(*connection_, FrameType::contribution, head_,
                             {.tensors = {&floats, 1},
                              .formed = std::move(formed),
                              .keep = keep,
                              .lossless = {how.fixed_lossless(), &policies_[number]}}));
  }
  return {};
}

Formed Node::form_answer(const Encoding& how, const Contribution& contribution,
                         std::span<const float> block) {
  if (how.form == Form::direct) return {};
  const Instant begun = clock_.now();
  Formed formed;
  if (how.form == Form::generic) {
    const TensorView view(std::as_bytes(block), DType::f32, Shape{static_cast<std::int64_t>(block.size())});
    formed = form_generic({&view, 1});
  } else {
    // Answers through a codec without error feedback are not judged.
    const bool same_step =
        how.has_feedback() && coded_answers_->begin(contribution.lease_id, contribution.step);
    formed = encoder_->encode(block, how.gradient, same_step);
  }
  coding_ += clock_.now() - begun;
  return formed;
}

// What codecs took since a contribution last said.
std::uint64_t Node::codec_until_now() {
  const Duration codec = sender_.stats().busy + receiver_.stats().busy + coding_;
  return static_cast<std::uint64_t>((codec - std::exchange(codec_told_, codec)).count());
}

Status Node::answer_void(const Lease& lease) {
  head_.clear();
  encode(
      Contribution{
          .lease_id = lease.lease_id, .step = lease.step, .version = lease.version, .block = lease.block},
      head_);
  return send_cold(FrameType::contribution, head_);
}

}  // namespace w5xde
