#include "coordinator/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "learn/no_gradient.h"
#include "lease/tuning.h"
#include "w5xde/version.h"

namespace w5xde {

namespace {

constexpr std::uint64_t kModelPartBytes = 4 * kMiB;

// A lossy codec may round what is small to -0.0, which would say that there is no gradient.
void mark_gradients(const Target& part) {
  const FloatRange range = part.range();
  auto* floats = reinterpret_cast<float*>(part.raw.data());
  for (const auto& entry : part.block->parameters->entries()) {
    if (entry.shape.elements() > 0 && entry.offset >= range.first && entry.offset < range.end())
      mark_gradient(floats[entry.offset - range.first]);
  }
}

// How long a peer that is not ready keeps its place: it says hello at once; a node then may have a large
// model to receive and to load; an observer asks for the status. These are seconds in which this process ran:
// a timer that fires late, because the process was busy or stopped, counts as one.
constexpr std::uint64_t kHelloSeconds = 5;
constexpr std::uint64_t kReadySeconds = 600;
constexpr std::uint64_t kModelBytesPerSecondMin = 64 * kKiB;
constexpr std::uint64_t kObserverSeconds = 60;
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
  host_.ended(*this, reason);
}

std::uint64_t Session::seconds_allowed() const {
  if (!greeted_) return kHelloSeconds;
  if (hello_.role != "node") return kObserverSeconds;
  // It waits for us: the run's data is still being opened.
  if (!offered_) return UINT64_MAX;
  return kReadySeconds + host_.model_file().size() / kModelBytesPerSecondMin;
}

void Session::watch() {
  watch_timer_ = loop_.after(kWatchEvery, [this] {
    if (ready_) return;
    if (++idle_seconds_ < seconds_allowed()) return watch();
    close(overloaded(fmt::format("no {} for {} s",
                                 !greeted_               ? "hello"
                                 : hello_.role == "node" ? "ready"
                                                         : "question",
                                 idle_seconds_)));
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
  return corrupt(fmt::format("a {} frame with a payload", name_of(header.type)));
}

Target Session::arriving_part(const Contribution& contribution) {
  return {
      {arriving_->data() + contribution.first_float * sizeof(float), contribution.tensors[0].byte_count()},
      contribution.tensors,
      &host_.shape(),
      contribution.first_float};
}

Result<MutableBytes> Session::place_contribution(const FrameHeader& header, Bytes head) {
  if (!ready_) return corrupt("a contribution before ready");
  W5XDE_TRY(const Contribution contribution, decode_contribution(head, limits_));
  if (contribution.tensors.empty() && header.payload_bytes == 0) return MutableBytes();
  const std::uint64_t floats = host_.shape().floats;
  if (contribution.tensors.size() != 1 || contribution.tensors[0].dtype != DType::f32 ||
      contribution.tensors[0].shape.elements() == 0 || contribution.first_float > floats ||
      contribution.tensors[0].shape.elements() > floats - contribution.first_float) {
    return corrupt(fmt::format("a contribution that is not one tensor of {} f32", floats));
  }
  // Before it is decoded: what a codec costs is bounded by what was asked for.
  W5XDE_CHECK(lease_of(contribution));
  // In order, and all of one before the next.
  const bool goes_on = contribution.first_float > 0 && contribution.lease_id == arriving_lease_;
  if (contribution.first_float != (goes_on ? landed_floats_ : 0) || (!goes_on && landed_floats_ > 0))
    return corrupt("a contribution with a hole in it");
  arriving_lease_ = contribution.lease_id;
  if (!arriving_) arriving_ = host_.take_buffer();
  return receiver_.place(header, contribution.coding, arriving_part(contribution));
}

Status Session::check_feedback(const Feedback& feedback) const {
  if (!ready_) return corrupt("feedback before ready");
  if (feedback.leaving ? !may_hand_over_ : feedback_asked_ == 0)
    return corrupt("feedback that nobody asked for");
  return {};
}

Result<MutableBytes> Session::place_feedback(const FrameHeader& header, Bytes head) {
  W5XDE_TRY(const Feedback feedback, decode_feedback(head, limits_));
  W5XDE_CHECK(check_feedback(feedback));
  const std::uint64_t bytes = payload_bytes_of(feedback.tensors);
  const std::uint64_t block = host_.shape().parameters->floats() * sizeof(float);
  if (bytes != block && bytes != 2 * block) return corrupt(fmt::format("feedback of {} bytes", bytes));
  return receiver_.place(header, {}, {feedback_.take(bytes), feedback.tensors});
}

Status Session::received(const FrameHeader& header, Bytes head, MutableBytes payload) {
  switch (header.type) {
    case FrameType::hello:
      return received_hello(head);
    case FrameType::status:
      return received_status_question();
    case FrameType::model:
      if (!offered_ || ready_ || std::exchange(model_sent_, true))
        return corrupt("a request for a model that was not offered, or was sent already");
      return send_model();
    case FrameType::ready:
      return received_ready(head);
    case FrameType::contribution:
      return received_contribution(header, head, payload);
    case FrameType::feedback:
      return received_feedback(header, head, payload);
    default:
      return corrupt(fmt::format("a node does not send {} frames", name_of(header.type)));
  }
}

// One reply at a time: a peer that asks and does not read must not fill the queue. What is asked meanwhile is
// answered once, when the queue is empty.
Status Session::received_status_question() {
  if (!greeted_) return corrupt("a status before hello");
  idle_seconds_ = 0;
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
  if (greeted_) return corrupt("a second hello");
  W5XDE_TRY(hello_, decode_hello(head, Limits::stranger()));
  const Hello mine{.software = "w5xde " + std::string(kVersion)};
  W5XDE_TRY(const std::uint32_t protocol, negotiate(mine, hello_, {connection_->stream().encrypted()}));
  log_.verbose("{} is {} ({}), protocol {}", peer(), hello_.name, hello_.software, protocol);
  greeted_ = true;
  idle_seconds_ = 0;
  // Until it is ready it has nothing large to say.
  limits_ = Limits::stranger();
  limits_.send_queue_bytes_max = Limits{}.send_queue_bytes_max;
  limits_.send_queue_frames_max = Limits{}.send_queue_frames_max;
  connection_->set_limits(limits_);
  offer();
  return {};
}

void Session::offer() {
  const Offer* run = host_.run_offer();
  if (!greeted_ || offered_ || run == nullptr || hello_.role != "node") return;
  offered_ = true;
  idle_seconds_ = 0;
  Head head;
  encode(*run, head);
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
  if (!offered_ || ready_) return corrupt("a ready that nobody waits for");
  W5XDE_TRY(about_, decode_ready(head, limits_));
  if (about_.model_fingerprint != host_.run_offer()->model_fingerprint) {
    return incompatible(
        fmt::format("{} made another model of '{}'; update its w5xde", name(), host_.run_offer()->model));
  }
  ready_ = true;
  kept_.set_bytes_max(about_.sample_cache_bytes);
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

Result<std::vector<Session::Out>::iterator> Session::lease_of(const Contribution& contribution) {
  const auto found = std::ranges::find(out_, contribution.lease_id, &Out::lease);
  if (found == out_.end()) return corrupt("a contribution to a lease that it does not have");
  W5XDE_CHECK(check_answer(contribution, *found));
  W5XDE_CHECK(check_coding(contribution, *found));
  return found;
}

// In async a node trains with the newest parameters that it has: one of those that it was sent, and not older
// than what came just before its lease.
bool Session::may_have_computed_with(std::uint64_t version, const Out& lease) const {
  if (version == lease.version) return true;
  return host_.run_offer()->newest_parameters && lease.work == Work::train && version > lease.version &&
         std::ranges::find(versions_, version) != versions_.end();
}

Status Session::check_coding(const Contribution& contribution, const Out& lease) const {
  if (contribution.tensors.empty()) return {};
  const AnswerForm& asked = lease.answer;
  const Coding& coding = contribution.coding;
  const bool coded = asked.form == Form::gradient;
  const bool same_codec =
      coding.form == asked.form &&
      coding.gradient_kind == (coded ? static_cast<std::uint8_t>(asked.gradient.kind) : 0) &&
      coding.rank == (coded ? asked.gradient.rank : 0);
  const FloatRange part = part_at(contribution.first_float, asked.part_floats, host_.shape());
  if (!same_codec || contribution.tensors[0].shape.elements() != part.count)
    return corrupt("a contribution in another coding than its lease asks for");
  return {};
}

// What is wrong in here would be wrong in the sum, the audit, or the order of things.
Status Session::check_answer(const Contribution& contribution, const Out& lease) const {
  const bool is_void = contribution.samples == 0;
  const bool has_floats = !contribution.tensors.empty();
  if (contribution.block != lease.block || contribution.step != lease.step ||
      !may_have_computed_with(contribution.version, lease) ||
      has_floats != (lease.work == Work::train && !is_void) ||
      (!is_void && contribution.samples != lease.samples) || contribution.correct > contribution.samples) {
    return corrupt("a contribution that is no answer to its lease");
  }
  return {};
}

Status Session::received_contribution(const FrameHeader& header, Bytes head, MutableBytes payload) {
  if (!ready_) return corrupt("a contribution before ready");
  W5XDE_TRY(const Contribution contribution, decode_contribution(head, limits_));
  W5XDE_TRY(const auto found, lease_of(contribution));
  if (contribution.tensors.empty()) {
    out_.erase(found);
    forget_versions();
    return host_.contributed(*this, contribution, nullptr);
  }
  // place() is asked for payloads only: without one there is no memory, or somebody's last contribution in
  // it.
  if (payload.empty()) return corrupt("a contribution without its floats");
  const Target part = arriving_part(contribution);
  W5XDE_CHECK(receiver_.finish(header, payload, contribution.coding, part));
  if (contribution.coding.form == Form::gradient) mark_gradients(part);
  // The last part may be too small for any.
  if (contribution.first_float == 0) lossless_up_ = static_cast<LosslessKind>(header.codec);
  // One that comes whole is looked at later, beside the loop if it is large.
  const std::uint64_t part_floats = contribution.tensors[0].shape.elements();
  if (contribution.first_float == 0) arriving_finite_ = true;
  if (part_floats < host_.shape().floats) {
    const std::span<const float> here(reinterpret_cast<const float*>(part.raw.data()), part_floats);
    arriving_finite_ = arriving_finite_ && all_finite(here);
  }
  landed_floats_ += part_floats;
  landed_bytes_ += header.payload_bytes;
  const std::uint64_t floats = host_.shape().floats;
  if (landed_floats_ < floats) {
    return host_.landing(*this, contribution, {reinterpret_cast<float*>(arriving_->data()), floats},
                         landed_floats_);
  }
  out_.erase(found);
  forget_versions();
  landed_floats_ = 0;
  const auto bytes = static_cast<double>(std::exchange(landed_bytes_, 0));
  contribution_bytes_ = contribution_bytes_ == 0 ? bytes : 0.8 * contribution_bytes_ + 0.2 * bytes;
  if (contribution.coding.form == Form::gradient && !gradient_codec_of(contribution.coding).stateless())
    has_feedback_ = true;
  return host_.contributed(*this, contribution, std::move(arriving_));
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

std::string Session::describe_up() const {
  const std::string_view lossless = lossless_up_ == LosslessKind::none ? "raw" : name_of(lossless_up_);
  if (contribution_bytes_ == 0) return std::string(lossless);
  const auto block = static_cast<double>(host_.shape().floats * sizeof(float));
  return fmt::format("{} (ratio {:.2f})", lossless, block / contribution_bytes_);
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

bool Session::awaits(std::uint64_t version) const {
  return sent_.version != version &&
         std::ranges::any_of(out_, [&](const Out& lease) { return lease.version <= version; });
}

std::optional<Session::Slots> Session::oldest_lease() const {
  if (out_.empty()) return std::nullopt;
  return Slots{out_.front().step, out_.front().block};
}

bool Session::has_lease_of(std::uint64_t version) const {
  return std::ranges::find(out_, version, &Out::version) != out_.end();
}

double Session::exchange_seconds() const {
  const LinkReport link = connection_->link();
  const double bytes = contribution_bytes_ > 0 ? contribution_bytes_
                                               : static_cast<double>(host_.shape().floats * sizeof(float));
  // The kernel's round trip: a heartbeat's waits until the node has computed.
  const double round_trip = link.tcp ? seconds_of(link.tcp->round_trip_min) : 0;
  double seconds_per_byte = kSecondsPerByte;
  if (link.receive_bytes_per_second > 0)
    seconds_per_byte = std::max(seconds_per_byte, 1 / link.receive_bytes_per_second);
  return kExchangeSeconds + round_trip + bytes * seconds_per_byte;
}

double Session::step_seconds(double version_bytes, bool overlaps) {
  const double rate = connection_->outgoing_bytes_per_second();
  const double down = rate > 0 ? version_bytes / rate : 0;
  return overlaps ? std::max(exchange_seconds(), down) : exchange_seconds() + down;
}

namespace {

PayloadSender::Lossless lossless_of(const SectionCodec* codec, LosslessPolicy& policy) {
  return codec != nullptr ? PayloadSender::Lossless{*codec} : PayloadSender::Lossless{.policy = &policy};
}

}  // namespace

Status Session::send_parameters(const Learner& learner, Broadcast& broadcast, const SectionCodec* codec) {
  W5XDE_CHECK(broadcast.send(learner, sent_, {codec, parameter_policies_}, *connection_, sender_.stats()));
  if (versions_.empty() || versions_.back() != learner.version()) versions_.push_back(learner.version());
  forget_versions();
  return {};
}

// The newest stays: its next lease may be computed with it.
void Session::forget_versions() {
  const auto oldest = std::ranges::min_element(out_, {}, &Out::version);
  const std::uint64_t needed = oldest == out_.end() ? UINT64_MAX : oldest->version;
  while (versions_.size() > 1 && versions_.front() < needed) versions_.pop_front();
}

Status Session::send_ahead(const Learner& learner, Broadcast& broadcast, const SectionCodec* codec) {
  return broadcast.send_ahead(learner, sent_, {codec, parameter_policies_}, *connection_, sender_.stats());
}

std::string Session::describe_down() const {
  return parameter_policies_.empty() ? "raw" : parameter_policies_.front().describe();
}

Status Session::send_lease(const Grant& grant, std::uint64_t version, std::uint64_t seed, Batch batch,
                           const LeaseForm& form) {
  Formed formed = form.generic ? form_generic(batch.payload) : Formed();
  const Lease lease{.lease_id = grant.lease,
                    .step = grant.step,
                    .version = version,
                    .seed = seed,
                    .block = grant.block,
                    .work = grant.work,
                    .lanes = grant.lanes,
                    .answer = coding_of(form.answer),
                    .slot_samples = std::move(batch.slot_samples),
                    .numbers = std::move(batch.numbers),
                    .coding = formed.coding,
                    .tensors = batch.tensors};
  head_.clear();
  encode(lease, head_);
  if (form.answer.form == Form::gradient && !form.answer.gradient.stateless()) may_hand_over_ = true;
  out_.push_back({.lease = grant.lease,
                  .work = grant.work,
                  .step = grant.step,
                  .block = grant.block,
                  .samples = lease.samples(),
                  .version = version,
                  .answer = form.answer});
  return sender_.send(*connection_, FrameType::lease, head_,
                      {.tensors = batch.payload,
                       .formed = std::move(formed),
                       .keep = std::move(batch.memory),
                       .lossless = lossless_of(form.codec, lease_policy_)});
}

}  // namespace w5xde
