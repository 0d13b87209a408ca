#include "coordinator/session.h"

#include <algorithm>

#include "base/errors.h"
#include "lease/tuning.h"
#include "w5xde/version.h"
#include "wire/proof.h"

namespace w5xde {

namespace {

constexpr std::uint64_t kModelPartBytes = 4 * kMiB;

constexpr auto kWatchEvery = std::chrono::seconds(1);

}  // namespace

std::string host_of(const Stream& stream) {
  const std::string peer = stream.peer();
  return peer.substr(0, peer.rfind(':'));
}

Session::Session(NodeId id, Host& host, std::unique_ptr<Stream> stream, const SocketOptions& socket,
                 ThreadPool* pool, const Log& log)
    : id_(id),
      host_(host),
      loop_(stream->loop()),
      log_(log),
      peer_(stream->peer()),
      host_name_(host_of(*stream)),
      sender_(pool, loop_),
      receiver_(pool, loop_) {
  connection_ = Connection::start(std::move(stream), *this, Limits::stranger());
  connection_->tune(socket);
  encode(Hello{.software = "w5xde " + std::string(kVersion), .name = "coordinator", .role = "coordinator"},
         head_);
  (void)connection_->send({.type = FrameType::hello, .head = head_});
  watch();
}

Session::~Session() {
  loop_.cancel(watch_timer_);
  connection_->detach();
}

void Session::closed(const Error& reason) {
  loop_.cancel(watch_timer_);
  leases_.let_go_of_memory();
  // Who it is that left, and gave this reason, is said where it is told.
  const bool told = connection_->goodbye_received() && reason.message.starts_with(kGoodbyePrefix);
  host_.ended(*this, told ? Error{reason.kind, reason.message.substr(kGoodbyePrefix.size())} : reason);
}

void Session::watch() {
  watch_timer_ = loop_.after(kWatchEvery, [this] {
    if (is_ready()) return;
    const bool offered = admission_.stage() == Admission::Stage::offered;
    if (!admission_.idle_too_long(offered ? host_.model_file().size() : 0)) return watch();
    close(overloaded(admission_.reason()));
  });
}

double Session::compression_ratio() const {
  const auto& sent = sender_.stats();
  const auto& received = receiver_.stats();
  const std::uint64_t wire = sent.wire_bytes + received.wire_bytes;
  return static_cast<double>(sent.raw_bytes + received.raw_bytes) / static_cast<double>(wire);
}

Result<MutableBytes> Session::place(const FrameHeader& header, Bytes head) {
  if (header.type == FrameType::contribution) return place_contribution(header, head);
  if (header.type == FrameType::feedback) return place_feedback(header, head);
  if (header.payload_bytes == 0) return MutableBytes();
  return corrupt("a {} frame with a payload", name_of(header.type));
}

Status Session::check_contribution(const Contribution& contribution) const {
  return leases_.check(contribution, host_.shape(), host_.run_offer()->newest_parameters);
}

Result<MutableBytes> Session::place_contribution(const FrameHeader& header, Bytes head) {
  if (!is_ready()) return corrupt("a contribution before ready");
  W5XDE_TRY(const Contribution contribution, decode_contribution(head, limits_));
  if (contribution.tensors.empty() && header.payload_bytes == 0) return MutableBytes();
  W5XDE_CHECK(arriving_.check_floats(contribution, host_.shape()));
  // Before it is decoded: what a codec costs is bounded by what was asked for.
  W5XDE_CHECK(check_contribution(contribution));
  W5XDE_CHECK(arriving_.check_order(contribution));
  const Target target = arriving_.place(contribution, host_.shape(), [this] { return host_.take_buffer(); });
  return receiver_.place(header, contribution.coding, target);
}

Status Session::check_feedback(const Feedback& feedback) const {
  if (!is_ready()) return corrupt("feedback before ready");
  if (feedback.leaving ? !may_hand_over_ : feedback_asked_ == 0)
    return corrupt("feedback that nobody asked for");
  return {};
}

Result<MutableBytes> Session::place_feedback(const FrameHeader& header, Bytes head) {
  W5XDE_TRY(const Feedback feedback, decode_feedback(head, limits_));
  W5XDE_CHECK(check_feedback(feedback));
  const std::uint64_t bytes = payload_bytes_of(feedback.tensors);
  const std::uint64_t block = host_.shape().parameters->floats() * sizeof(float);
  if (bytes != block && bytes != 2 * block) return corrupt("feedback of {} bytes", bytes);
  return receiver_.place(header, {}, {feedback_.take(bytes), feedback.tensors});
}

Status Session::received(const FrameHeader& header, Bytes head, MutableBytes payload) {
  switch (header.type) {
    case FrameType::hello:
      return received_hello(head);
    case FrameType::proof:
      return received_proof(head);
    case FrameType::status:
      return received_status_question();
    case FrameType::model:
      if (!admission_.take_model())
        return corrupt("a request for a model that was not offered, or was sent already");
      return send_model();
    case FrameType::ready:
      return received_ready(head);
    case FrameType::contribution:
      return received_contribution(header, head, payload);
    case FrameType::feedback:
      return received_feedback(header, head, payload);
    default:
      return corrupt("a node does not send {} frames", name_of(header.type));
  }
}

// One reply at a time: a peer that asks and does not read must not fill the queue. What is asked meanwhile is
// answered once, when the queue is empty.
Status Session::received_status_question() {
  if (admission_.stage() == Admission::Stage::silent) return corrupt("a status before hello");
  if (admission_.stage() == Admission::Stage::greeted) {
    if (!admission_.has_asked())
      return incompatible("the status is for who was invited; `w5xde invite RUN --role observer` invites");
    status_due_ = true;
    return {};
  }
  if (!admission_.may_observe())
    return incompatible(
        "an invitation for a node does not show the status; ask for one with --role observer");
  admission_.asked();
  status_due_ = connection_->queued_bytes() > 0;
  if (status_due_) return {};
  Head report;
  encode(host_.status(), report);
  return connection_->send({.type = FrameType::status, .head = report});
}

void Session::drained() {
  if (status_due_) (void)received_status_question();
  host_.drained(*this);
}

Status Session::received_hello(Bytes head) {
  if (admission_.stage() != Admission::Stage::silent) return corrupt("a second hello");
  W5XDE_TRY(Hello hello, decode_hello(head, Limits::stranger()));
  const Hello mine{.software = "w5xde " + std::string(kVersion)};
  W5XDE_TRY(const std::uint32_t protocol, negotiate(mine, hello, {connection_->stream().encrypted()}));
  log_.verbose("{} is {} ({}), protocol {}", peer(), hello.name, hello.software, protocol);
  admission_.greet(std::move(hello));
  // Until it is ready it has nothing large to say.
  limits_ = Limits::stranger();
  limits_.send_queue_bytes_max = Limits{}.send_queue_bytes_max;
  limits_.send_queue_frames_max = Limits{}.send_queue_frames_max;
  connection_->set_limits(limits_);
  if (host_.access() == nullptr) let_in(Role::owner);
  return {};
}

Status Session::received_proof(Bytes head) {
  if (admission_.stage() != Admission::Stage::greeted || admission_.has_asked())
    return corrupt("a proof that nobody waits for");
  W5XDE_TRY(const Proof proof, decode_proof(head));
  const Stream& stream = connection_->stream();
  const auto secret = stream.session_secret();
  if (!secret) return incompatible("an invitation is proven over TLS, and this connection has none");
  const auto answered = [this](Result<Role> role) {
    if (role.ok()) return let_in(*role);
    close(std::move(role).error());
  };
  admission_.ask(host_.access()->ask({.proof = proof,
                                      .identity = stream.peer_identity(),
                                      .session_secret = *secret,
                                      .is_node = admission_.is_node(),
                                      .host = host_name_},
                                     answered, [this](Error reason) { close(std::move(reason)); }));
  return {};
}

void Session::let_in(Role role) {
  admission_.let_in(role);
  if (status_due_) close_unless(received_status_question());
  offer();
}

void Session::offer() {
  const Offer* run = host_.run_offer();
  if (admission_.stage() != Admission::Stage::admitted || run == nullptr || !admission_.is_node()) return;
  if (run->preparation.any() && admission_.hello().protocol_max < kProtocolOfPreparation) {
    const auto& hello = admission_.hello();
    return connection_->close(
        incompatible("{} speaks protocol {}, and a run with --normalize or --augment needs {}; update it",
                     hello.software, hello.protocol_max, kProtocolOfPreparation));
  }
  if (!run->model_hash.empty() && admission_.hello().protocol_max < kProtocolOfSha256) {
    const auto& hello = admission_.hello();
    return connection_->close(
        incompatible("{} speaks protocol {}, and a run with a model file needs {}; update it", hello.software,
                     hello.protocol_max, kProtocolOfSha256));
  }
  admission_.offer();
  Offer offer = *run;
  if (const SharedProbe* probe = host_.memory_probe(); probe != nullptr && is_local())
    offer.memory_probe = probe->question();
  Head head;
  encode(offer, head);
  (void)connection_->send({.type = FrameType::offer, .head = head});
}

Status Session::send_model() {
  const Bytes file = host_.model_file();
  for (std::uint64_t at = 0; at < file.size(); at += kModelPartBytes) {
    const Bytes part = file.subspan(at, std::min<std::uint64_t>(kModelPartBytes, file.size() - at));
    Head head;
    encode(ModelPart{.offset = at, .bytes = part.size()}, head);
    const TensorView view = TensorView::of_bytes(part);
    W5XDE_CHECK(connection_->send({.type = FrameType::model, .head = head, .payload = {&view, 1}}));
  }
  return {};
}

Status Session::received_ready(Bytes head) {
  if (admission_.stage() != Admission::Stage::offered) return corrupt("a ready that nobody waits for");
  W5XDE_TRY(Ready about, decode_ready(head, limits_));
  if (about.model_fingerprint != host_.run_offer()->model_fingerprint) {
    return incompatible("{} made another model of '{}'; update its w5xde", name(), host_.run_offer()->model);
  }
  if (about.compute != host_.run_offer()->compute) {
    return incompatible("this run computes in {} and {} in {}; update its w5xde",
                        name_of(host_.run_offer()->compute), name(), name_of(about.compute));
  }
  const SharedProbe* probe = host_.memory_probe();
  if (probe == nullptr || !is_local() || !probe->is_answered_by(about.memory_token))
    about.memory_token.clear();
  kept_.set_bytes_max(about.sample_cache_bytes);
  admission_.become_ready(std::move(about));
  // One contribution at a time, as large as the model at most, in whatever form; or what a codec kept of two.
  const TensorList model = {{DType::f32, Shape{static_cast<std::int64_t>(host_.shape().floats)}}};
  const Target target{{}, model, &host_.shape()};
  limits_.payload_bytes_max = 2 * model[0].byte_count();
  for (const Coding& longest :
       {Coding{.form = Form::generic},
        Coding{.form = Form::gradient, .gradient_kind = static_cast<std::uint8_t>(GradientKind::topk)}}) {
    limits_.payload_bytes_max = std::max(limits_.payload_bytes_max, formed_bytes_max(longest, target));
  }
  limits_.payload_bytes_max = section_bytes_max(limits_.payload_bytes_max);
  limits_.tensors_max = 1;
  connection_->set_limits(limits_);
  return host_.ready(*this);
}

Status Session::received_contribution(const FrameHeader& header, Bytes head, MutableBytes payload) {
  if (!is_ready()) return corrupt("a contribution before ready");
  W5XDE_TRY(const Contribution contribution, decode_contribution(head, limits_));
  W5XDE_CHECK(check_contribution(contribution));
  // Without floats, or with floats that are where its lease told it to write them.
  const bool is_shared = contribution.coding.form == Form::shared && !contribution.tensors.empty();
  if (is_shared) W5XDE_CHECK(arriving_.check_whole(contribution, host_.shape()));
  if (contribution.tensors.empty() || is_shared)
    return host_.contributed(*this, contribution, leases_.erase(contribution.lease_id));
  // place() is asked for payloads only: without one there is no memory, or somebody's last contribution in
  // it.
  if (payload.empty()) return corrupt("a contribution without its floats");
  const BlockShape& shape = host_.shape();
  W5XDE_CHECK(receiver_.finish(header, payload, contribution.coding, arriving_.target(contribution, shape)));
  arriving_.landed(header, contribution, shape);
  if (arriving_.floats_landed() < shape.floats)
    return host_.landing(*this, contribution, arriving_.values(shape), arriving_.floats_landed());
  (void)leases_.erase(contribution.lease_id);
  if (w5xde::has_feedback(contribution.coding)) has_feedback_ = true;
  return host_.contributed(*this, contribution, arriving_.take());
}

Status Session::received_feedback(const FrameHeader& header, Bytes head, Bytes payload) {
  W5XDE_TRY(const Feedback feedback, decode_feedback(head, limits_));
  W5XDE_CHECK(check_feedback(feedback));
  if (feedback.leaving) {
    leaving_ = true;
    may_hand_over_ = false;
  }
  if (!feedback.leaving) --feedback_asked_;
  if (feedback.tensors.empty()) return host_.fed_back(*this, feedback, {});
  if (payload.empty()) return corrupt("feedback without its floats");
  const MutableBytes raw(feedback_.data(), payload_bytes_of(feedback.tensors));
  W5XDE_CHECK(receiver_.finish(header, payload, {}, {raw, feedback.tensors}));
  if (feedback.leaving) has_feedback_ = false;
  return host_.fed_back(*this, feedback,
                        {reinterpret_cast<const float*>(raw.data()), raw.size() / sizeof(float)});
}

Status Session::ask_feedback() {
  Head head;
  encode(Feedback{}, head);
  ++feedback_asked_;
  return connection_->send({.type = FrameType::feedback, .head = head});
}

Status Session::send_verdict(LeaseId lease, bool counted) {
  Head head;
  encode(Verdict{.lease_id = lease, .counted = counted}, head);
  return connection_->send({.type = FrameType::verdict, .head = head});
}

Status Session::send_feedback(std::span<const float> feedback) {
  Head head;
  encode(Feedback{.tensors = {{DType::f32, Shape{static_cast<std::int64_t>(feedback.size())}}}}, head);
  const auto copy = std::make_shared<std::vector<float>>(feedback.begin(), feedback.end());
  const TensorView view = TensorView::of_bytes(std::as_bytes(std::span(*copy)));
  has_feedback_ = may_hand_over_ = true;
  return sender_.send(*connection_, FrameType::feedback, head, {.tensors = {&view, 1}, .keep = copy});
}

double Session::answer_bytes() const {
  return arriving_.bytes() > 0 ? arriving_.bytes()
                               : static_cast<double>(host_.shape().floats * sizeof(float));
}

double Session::exchange_seconds(double answer_bytes) const {
  const LinkReport link = connection_->link();
  // The kernel's round trip: a heartbeat's waits until the node has computed.
  const double round_trip = link.tcp ? seconds_of(link.tcp->round_trip_min) : 0;
  return w5xde::exchange_seconds(round_trip, answer_bytes, link.receive_bytes_per_second);
}

double Session::step_seconds(double version_bytes, double answer_bytes, bool overlaps) {
  const double rate = connection_->outgoing_bytes_per_second();
  const double down = rate > 0 ? version_bytes / rate : 0;
  const double exchange = exchange_seconds(answer_bytes);
  return overlaps ? std::max(exchange, down) : exchange + down;
}

Status Session::send_parameters(const Learner& learner, Broadcast& broadcast, const SectionCodec* codec) {
  W5XDE_CHECK(broadcast.send(learner, sent_, {codec, parameter_policies_}, *connection_, sender_.stats()));
  leases_.sent_version(learner.version());
  return {};
}

Status Session::share_parameters(const Learner& learner) {
  sent_ = {.version = learner.version()};
  leases_.sent_version(learner.version(), learner.state());
  head_.clear();
  encode(Parameters{.version = learner.version(),
                    .floats_total = learner.floats(),
                    .coding = {.form = Form::shared},
                    .memory = learner.state()->shared()->address(),
                    .tensors = {{DType::f32, Shape{static_cast<std::int64_t>(learner.floats())}}}},
         head_);
  return connection_->send({.type = FrameType::parameters, .head = head_});
}

Status Session::send_ahead(const Learner& learner, Broadcast& broadcast, const SectionCodec* codec) {
  return broadcast.send_ahead(learner, sent_, {codec, parameter_policies_}, *connection_, sender_.stats());
}

std::string Session::describe_down() const {
  return parameter_policies_.empty() ? "uncompressed" : parameter_policies_.front().describe();
}

Status Session::send_lease(const Grant& grant, std::uint64_t version, std::uint64_t seed, Batch batch,
                           LeaseForm form) {
  Formed formed = form.generic ? form_generic(batch.payload) : Formed();
  Lease lease{.lease_id = grant.lease,
              .step = grant.step,
              .version = version,
              .seed = seed,
              .block = grant.block,
              .work = grant.work,
              .lanes = grant.lanes,
              .answer = to_wire(form.answer),
              .slot_samples = std::move(batch.slot_samples),
              .numbers = std::move(batch.numbers),
              .coding = formed.coding,
              .tensors = batch.tensors};
  if (form.memory) lease.answer.memory = form.memory->shared()->address();
  head_.clear();
  encode(lease, head_);
  if (form.answer.has_feedback()) may_hand_over_ = true;
  leases_.add({.grant = grant,
               .samples = lease.samples(),
               .version = version,
               .answer = form.answer,
               .memory = std::move(form.memory)});
  if (form.state) leases_.sent_version(version, std::move(form.state));
  return sender_.send(*connection_, FrameType::lease, head_,
                      {.tensors = batch.payload,
                       .formed = std::move(formed),
                       .keep = std::move(batch.memory),
                       .lossless = {form.codec, &lease_policy_}});
}

}  // namespace w5xde
