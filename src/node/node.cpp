#include "node/node.h"

#include <algorithm>

#include "base/errors.h"
#include "lease/tuning.h"

namespace w5xde {

namespace {

// Leases shorter than this are computed on the loop's thread. Longer ones must not keep heartbeats waiting.
constexpr double kInlineSecondsMax = 0.015;
constexpr double kUnknownSeconds = 1;  // for a slot that was never computed here: more than the loop may take

}  // namespace

Node::Node(Loop& loop, NodeOptions options, const Log& log)
    : loop_(loop),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : loop),
      background_(loop.background()),
      enrolment_(options_, clock_, log, *background_,
                 [this](LoadedModel model) { enrolled(std::move(model)); }),
      receiver_(nullptr, clock_),
      samples_(options_.sample_cache_bytes) {}

Node::~Node() {
  background_.reset();  // it computes with what goes next
  if (connection_) connection_->detach();
}

void Node::start(std::unique_ptr<Stream> stream) {
  connection_ = Connection::start(std::move(stream), *this, Limits::stranger());
  enrolment_.begin(*connection_);
}

void Node::enrolled(LoadedModel model) {
  model_ = std::move(model);
  answers_.emplace(model_.replica->shape(), static_cast<float>(enrolment_.offer().momentum), *connection_,
                   receiver_, clock_);
  waiting_since_ = loop_.now();
}

void Node::closed(const Error& reason) {
  parted_ = parted_ || connection_->goodbye_received();
  reason_ = reason;
  leases_.clear();
}

void Node::leave(std::string reason) {
  leaving_ = std::move(reason);
  leases_.clear();
  if (activity_ != Activity::computing) end_leave();
}

void Node::end_leave() {
  // The feedback that is handed over must contain nothing of an answer that does not count.
  if (answers_ && answers_->unjudged() && connection_->open()) return;
  parted_ = true;
  if (connection_ && connection_->open()) {
    // If it cannot be sent, it is lost: the coordinator counts that.
    if (answers_) (void)answers_->send_last_feedback();
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
      return enrolment_.place_model(header, head);
    case FrameType::feedback:
      if (!answers_) return corrupt("feedback before the model");
      return answers_->place_feedback(header, head);
    default:
      if (header.payload_bytes == 0) return MutableBytes();
      return corrupt("a {} frame with a payload", name_of(header.type));
  }
}

Status Node::received(const FrameHeader& header, Bytes head, MutableBytes payload) {
  if (header.type == FrameType::parameters && payload.empty()) return received_shared_parameters(head);
  // place() is called for payloads only: without one, what it prepares is missing, or is the last frame's.
  if (header.type == FrameType::model && payload.empty())
    return corrupt("a {} frame without a payload", name_of(header.type));
  switch (header.type) {
    case FrameType::hello:
      return enrolment_.received_hello(head);
    case FrameType::offer:
      return enrolment_.received_offer(head);
    case FrameType::model:
      return enrolment_.received_model();
    case FrameType::parameters: {
      const bool first = model_.replica->state() == nullptr;
      W5XDE_TRY(const bool whole, model_.replica->finish(header, payload, receiver_));
      if (first)
        enrolment_.tell_of_first_parameters(model_.replica->landed_floats(), model_.replica->shape().floats);
      if (whole) compute_next();
      return {};
    }
    case FrameType::lease:
      return received_lease(header, head, payload);
    case FrameType::feedback:
      if (!answers_) return corrupt("feedback before the model");
      return answers_->received_feedback(header, head, payload);
    case FrameType::verdict:
      return received_verdict(head);
    default:
      return corrupt("a coordinator does not send {} frames", name_of(header.type));
  }
}

Result<MutableBytes> Node::place_parameters(const FrameHeader& header, Bytes head) {
  if (!model_.replica) return corrupt("parameters before the model");
  W5XDE_TRY(Parameters parameters, decode_parameters(head, limits_));
  if (!model_.replica->state() && parameters.first_float == 0) prepare_for_large_model(model_.lanes_max);
  return model_.replica->place(header, std::move(parameters), receiver_);
}

// While its first parameters are on their way: until then a node holds nothing of the model's size, because
// it may only stand by. The first lease comes behind this on the same thread, since its time is not known.
void Node::prepare_for_large_model(std::uint32_t buffers) {
  if (model_.replica->shape().floats * sizeof(float) < kLargeModelBytes) return;
  background_->run([this, buffers] { model_.computation->prepare(model_.lanes_max, buffers); });
}

Status Node::received_shared_parameters(Bytes head) {
  if (!model_.replica) return corrupt("parameters before the model");
  W5XDE_TRY(const Parameters parameters, decode_parameters(head, limits_));
  if (parameters.coding.form != Form::shared)
    return corrupt("a {} frame without a payload", name_of(FrameType::parameters));
  const std::uint64_t bytes = model_.replica->shape().floats * sizeof(float);
  W5XDE_TRY(auto block, memory_.map(parameters.memory, SharedBlock::Access::read, bytes));
  // The first lane adds up in the coordinator's memory.
  if (!model_.replica->state()) prepare_for_large_model(model_.lanes_max - 1);
  model_.replica->adopt(parameters.version, std::make_shared<AlignedBuffer>(std::move(block)));
  compute_next();
  return {};
}

Result<MutableBytes> Node::place_lease(const FrameHeader& header, Bytes head) {
  if (!model_.engine) return corrupt("a lease before the model");
  W5XDE_TRY(arriving_.lease, decode_lease(head, limits_));
  const Lease& lease = arriving_.lease;
  W5XDE_TRY(const Encoding answer, from_wire(lease.answer));
  const std::uint64_t floats = model_.replica->shape().floats;
  if (answer.part_floats > 0 && (floats - 1) / answer.part_floats >= kPartsMax)
    return corrupt("parts of {} floats of {}", answer.part_floats, floats);
  arriving_.answer = nullptr;
  if (answer.form == Form::shared) {
    W5XDE_TRY(arriving_.answer,
              memory_.map(lease.answer.memory, SharedBlock::Access::write, floats * sizeof(float)));
  }
  const std::uint64_t bytes = payload_bytes_of(lease.tensors);
  W5XDE_CHECK(check_room_for(bytes));
  arriving_.payload = std::make_shared<AlignedBuffer>(bytes);
  return receiver_.place(header, lease.coding, {{arriving_.payload->data(), bytes}, lease.tensors});
}

// A coordinator has a few small leases out to a node, so that adding them up each time is cheap.
Status Node::check_room_for(std::uint64_t lease_bytes) const {
  std::uint64_t held = lease_bytes;
  for (const Pending& pending : leases_) held += payload_bytes_of(pending.lease.tensors);
  const std::uint64_t bytes_max = std::min(limits_.lease_bytes_held_max, options_.machine.memory_bytes / 2);
  if (held <= bytes_max && leases_.size() < limits_.leases_held_max) return {};
  return overloaded("{} leases with {} bytes of samples; there is room here for {} and {}",
                    leases_.size() + 1, held, limits_.leases_held_max, bytes_max);
}

Status Node::received_lease(const FrameHeader& header, Bytes head, Bytes payload) {
  // A lease whose samples are all in the cache has no payload, so place() was not called.
  if (payload.empty() && !place_lease(header, head).ok()) return corrupt("a lease frame without a payload");
  Lease& lease = arriving_.lease;
  const MutableBytes raw(arriving_.payload->data(), payload_bytes_of(lease.tensors));
  W5XDE_CHECK(receiver_.finish(header, payload, lease.coding, {raw, lease.tensors}));
  W5XDE_CHECK(samples_.complete(lease, arriving_.payload, limits_));
  if (!leaving_) leases_.push_back(std::exchange(arriving_, {}));
  compute_next();
  return {};
}

Status Node::received_verdict(Bytes head) {
  if (!answers_) return corrupt("a verdict before the model");
  W5XDE_TRY(const Verdict verdict, decode_verdict(head));
  answers_->judge(verdict);
  if (leaving_ && activity_ != Activity::computing) end_leave();
  return {};
}

bool Node::computable(const Lease& lease) const {
  if (!model_.replica->state()) return false;
  return lease.version == model_.replica->version() ||
         (enrolment_.offer().newest_parameters && lease.work == Work::train);
}

// The lease is chosen from the loop, so that what was just sent is on its way first.
void Node::compute_next() {
  if (activity_ != Activity::idle || leases_.empty()) return;
  activity_ = Activity::choosing;
  loop_.post([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    activity_ = Activity::idle;
    if (!reason_) choose_lease();
  });
}

void Node::choose_lease() {
  while (true) {
    const auto next = std::ranges::find_if(leases_, [&](const Pending& pending) {
      return computable(pending.lease) || pending.lease.version < model_.replica->version();
    });
    if (next == leases_.end()) return;
    Pending pending = std::move(*next);
    leases_.erase(next);
    if (computable(pending.lease)) return compute(std::move(pending));
    // The step went on without this node. Every lease is answered, also this one.
    if (!answer_void(pending.lease).ok()) return;
  }
}

std::uint64_t Node::take_wait_ns() {
  if (!waiting_since_) return 0;
  const Duration waited = loop_.now() - *waiting_since_;
  waiting_since_.reset();
  return static_cast<std::uint64_t>(std::max<Duration::rep>(waited.count(), 0));
}

void Node::compute(Pending pending) {
  activity_ = Activity::computing;
  for (auto& buffer : answers_->take_returned()) model_.computation->give_back(std::move(buffer));
  wait_ns_ = take_wait_ns();
  version_computed_ = model_.replica->version();
  const auto work = std::make_shared<Pending>(std::move(pending));
  const auto slot_seconds = slot_seconds_[static_cast<std::size_t>(work->lease.work)];
  const double seconds = slot_seconds.value_or(kUnknownSeconds) * work->lease.block.slot_count;
  const std::uint32_t lanes = seconds <= kShortSeconds ? 1 : std::min(work->lease.lanes, model_.lanes_max);
  const auto run = [this, work, lanes, state = model_.replica->state()] {
    const Bytes payload(work->payload->data(), payload_bytes_of(work->lease.tensors));
    const std::span<const float> floats(reinterpret_cast<const float*>(state->data()),
                                        model_.engine->description().floats());
    auto into = work->answer ? std::make_unique<AlignedBuffer>(work->answer) : nullptr;
    return model_.computation->run(work->lease, payload, floats, lanes, std::move(into));
  };
  if (seconds / lanes <= kInlineSecondsMax) return computed(work->lease, run());
  const auto result = std::make_shared<std::optional<Result<Computed>>>();
  background_->run([run, result] { result->emplace(run()); },
                   [this, work, result] { computed(work->lease, std::move(**result)); });
}

void Node::computed(const Lease& lease, Result<Computed> result) {
  activity_ = Activity::idle;
  if (leases_.empty()) memory_.sweep();
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
                            .counted = result.counted,
                            .correct = result.correct,
                            .compute_ns = static_cast<std::uint64_t>(result.busy.count()),
                            .lanes = result.lanes,
                            .wait_ns = wait_ns_,
                            .loop_ns = static_cast<std::uint64_t>(loop_.longest_task().count())};
  Encoding form;
  if (result.values) {
    W5XDE_TRY(form, from_wire(lease.answer));
  }
  return answers_->send(std::move(contribution), form, std::move(result.values));
}

Status Node::answer_void(const Lease& lease) {
  Head head;
  encode(
      Contribution{
          .lease_id = lease.lease_id, .step = lease.step, .version = lease.version, .block = lease.block},
      head);
  return connection_->send({.type = FrameType::contribution, .head = head});
}

}  // namespace w5xde
