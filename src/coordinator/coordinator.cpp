#include "coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/hash.h"
#include "learn/seeds.h"

namespace w5xde {

namespace {

constexpr auto kTick = std::chrono::milliseconds(20);
// How long nodes have to finish what they hold when an async run is stopped.
constexpr auto kStopPatience = std::chrono::seconds(5);
constexpr std::uint32_t kEvaluationBatch = 256;
constexpr auto kProgressEvery = std::chrono::seconds(1);
// Past max_staleness a contribution counts less, past this many times that it is refused.
constexpr std::uint64_t kRefusedStaleness = 4;
constexpr std::size_t kDeparturesKept = 20;

Round::Computing computing_of(const Contribution& contribution) {
  return {static_cast<double>(contribution.compute_ns) * 1e-9, contribution.lanes};
}

}  // namespace

Coordinator::Coordinator(AsioLoop& loop, Options options, RunFolder folder, const Log& log)
    : loop_(loop),
      options_(std::move(options)),
      log_(log),
      pool_(std::max(1u, std::thread::hardware_concurrency()) - 1),
      recorder_(loop, std::move(folder), log) {}

Coordinator::~Coordinator() {
  loop_.cancel(tick_timer_);
}

Result<std::unique_ptr<Coordinator>> Coordinator::listen(AsioLoop& loop, Options options, RunFolder folder,
                                                         const Log& log) {
  std::unique_ptr<Coordinator> self(new Coordinator(loop, std::move(options), std::move(folder), log));
  W5XDE_TRY(self->listener_, TcpListener::listen(loop, self->options_.listen, {},
                                                 [raw = self.get()](std::unique_ptr<Stream> stream) {
                                                   raw->accept(std::move(stream));
                                                 }));
  self->arm_tick();
  return self;
}

void Coordinator::accept(std::unique_ptr<Stream> stream) {
  if (sessions_.size() + parting_.size() >= Limits{}.connections_max || phase_ == Phase::ended) return;
  const NodeId id = next_node_++;
  Session::Host& host = *this;
  sessions_[id] = std::make_unique<Session>(id, host, std::move(stream), options_.config.transport.socket(),
                                            &pool_, log_);
}

Status Coordinator::begin(Material material) {
  const RunConfig& config = options_.config;
  const CheckpointInfo& from = material.checkpoint.info();
  batches_.emplace(
      material.data,
      Sampler::Options{.samples = material.data->samples(), .batch = config.batch, .seed = config.seed},
      &pool_);
  const std::uint64_t slots_total = config.slots_total(batches_->sampler().slots_per_epoch());
  const std::uint64_t steps_total =
      slots_total == 0 ? config.steps : (slots_total + config.step_slots() - 1) / config.step_slots();
  W5XDE_TRY(const Schedule schedule, parse_schedule(config.schedule, steps_total));
  W5XDE_TRY(
      learner_,
      Learner::from(material.checkpoint,
                    {.optimizer = optimizer_options(), .schedule = schedule, .clip_norm = config.clip_norm},
                    &pool_));
  shape_ = {learner_->parameters(), learner_->floats()};
  W5XDE_CHECK(begin_transfer(material.checkpoint));
  round_.emplace(Round::Options{.mode = config.mode,
                                .slots = config.step_slots(),
                                .slots_total = slots_total,
                                .first_step = from.step,
                                .grain = grain(),
                                .steps_total = config.growth.grows() ? config.steps : 0,
                                .halves = config.growth.grows(),
                                .crews = config.transport.crew == "auto",
                                .dear = shape_.floats * sizeof(float) >= kDearBytes,
                                .lanes = config.threads == 1});
  W5XDE_CHECK(begin_growth(from));
  begin_reduction();
  if (material.evaluation) {
    evaluation_batches_.emplace(
        material.evaluation,
        Sampler::Options{
            .samples = material.evaluation->samples(), .batch = kEvaluationBatch, .shuffle = false});
  }
  counted_ = from;
  seconds_before_ = from.seconds;
  checkpointed_version_ = from.version;
  recorder_.resume(from.step);
  offer_ = make_offer(material);
  material_.emplace(std::move(material));
  for (auto& [id, session] : sessions_) session->offer();
  if (run_over()) start_training();  // a finished run that is started again only says so
  return {};
}

void Coordinator::arm_tick() {
  tick_timer_ = loop_.after(kTick, [this] {
    tick();
    if (phase_ != Phase::ended) arm_tick();
  });
}

void Coordinator::tick() {
  if (phase_ == Phase::waiting || phase_ == Phase::ended) return;
  const Instant now = loop_.now();
  const RunConfig& config = options_.config;
  if (config.seconds > 0 && seconds() >= config.seconds && !out_of_time_) {
    out_of_time_ = true;
    round_->hold(true);
  }
  if (stopping_ && !writing_ && now - stop_asked_ > kStopPatience) {
    log_.error("the nodes did not finish in time; the run goes on from the last checkpoint");
    return end(Status());
  }
  // An async run has a cursor only when nothing is out.
  if (config.mode == Mode::async && now >= checkpoint_due_) round_->hold(true);
  advance();
  if (phase_ == Phase::ended) return;
  choose_gradient_codecs();
  bring_up_to_date();
  hand_over_feedback();
  pump();
  if (now >= progress_due_) {
    progress_due_ = now + kProgressEvery;
    measure_links();
    if (on_progress) on_progress(status());
  }
}

Status Coordinator::ready(Session& session) {
  const Ready& about = session.about();
  Place place{.lanes = about.lanes, .host = session.host()};
  if (options_.config.turns) place.machine = about.machine;
  round_->join(session.id(), place);
  round_->set_behind(session.id(), calls_newcomers());
  round_->set_exchange_seconds(session.id(), session.exchange_seconds());
  ++nodes_seen_;
  if (engine_.empty()) engine_ = session.about().engine;
  if (processor_.empty()) processor_ = session.about().processor;
  event(fmt::format("{} joined from {} ({})", session.name(), session.peer(), session.about().engine));
  if (session.about().engine != engine_ || session.about().processor != processor_) {
    log_.normal(
        "{} computes with {} on {}, others with {} on {}: the last bits of the result may depend on who "
        "computes what",
        session.name(), session.about().engine, session.about().processor, engine_, processor_);
  }
  recorder_.add(RunDatabase::NodeRow{.name = session.name(),
                                     .peer = session.peer(),
                                     .engine = session.about().engine,
                                     .joined_seconds = seconds()});
  if (phase_ == Phase::waiting && round_->nodes() >= options_.nodes_awaited) start_training();
  if (phase_ != Phase::waiting) pump();
  return {};
}

void Coordinator::start_training() {
  phase_ = Phase::training;
  begun_ = row_since_ = loop_.now();
  checkpoint_due_ = begun_ + duration_of(options_.config.checkpoint_seconds);
  progress_due_ = begun_;
  advance();
}

void Coordinator::ended(Session& session, const Error& reason) {
  const NodeId id = session.id();
  if (session.is_ready()) {
    round_->leave(id);
    forget_landing(id);
    feedback_gone(session);
    catching_up_.erase(id);
    session.update_tally();
    session.tally.codec_up = describe_up(session);
    session.tally.codec_down = describe_down(session);
    left_.push_back(session.tally);
    departures_.push_back({session.name(), seconds(), reason.message});
    if (departures_.size() > kDeparturesKept) departures_.pop_front();
    recorder_.add(RunDatabase::NodeRow{.name = session.name(),
                                       .peer = session.peer(),
                                       .engine = session.about().engine,
                                       .joined_seconds = seconds(),
                                       .left_seconds = seconds(),
                                       .reason = reason.message,
                                       .batches = session.tally.batches});
    if (phase_ == Phase::training) event(fmt::format("{} left: {}", session.name(), reason.message));
    // One node that cannot compute may be broken; what two cannot, or the last one, nobody will.
    if (phase_ == Phase::training && reason.kind == ErrorKind::invalid &&
        (++nodes_unable_ > 1 || round_->nodes() == 0)) {
      fail(reason);
    }
  } else if (!session.name().empty()) {
    log_.normal("{} ({}) did not come in: {}", session.name(), session.peer(), reason.message);
  } else {
    log_.verbose("{}: {}", session.peer(), reason.message);
  }
  parting_.insert(sessions_.extract(id));
  if (phase_ == Phase::training) pump();
}

// Leases go out as the round hands them out; a node that is to compute now gets the parameters first.
void Coordinator::pump() {
  if (phase_ != Phase::training) return;
  for (const Grant& grant : round_->grants(loop_.now())) {
    if (Status sent = send(grant); !sent.ok()) sessions_.at(grant.node)->close(std::move(sent).error());
  }
}

Status Coordinator::send(const Grant& grant) {
  Session& session = *sessions_.at(grant.node);
  if (stopping_) stop_asked_ = loop_.now();  // it is for a step that is to be ended
  const bool train = grant.work == Work::train;
  const bool now = !train || options_.config.mode == Mode::async || grant.step == round_->front_step();
  if (now && session.version_sent() != learner_->version()) W5XDE_CHECK(send_parameters(session));
  // In sync the version of a step's parameters is known before they are: they are those of the step's number.
  const std::uint64_t ahead =
      options_.config.mode == Mode::sync && train ? grant.step - round_->front_step() : 0;
  return session.send_lease(grant, learner_->version() + ahead, step_seed(options_.config.seed, grant.step),
                            batch_for(session, grant),
                            {.generic = options_.config.transport.generic(),
                             .codec = codec_down(),
                             .answer = answer_form(session)});
}

// To a node that has leases of the new front step already. One that has not even taken the last version (it
// is slow, or frozen) gets the newest when it has: nothing piles up for it.
void Coordinator::send_newest(Session& session) {
  if (!session.is_ready() || !session.awaits(learner_->version())) return;
  if (session.version_sent() != kNoVersion && session.connection().queued_bytes() > 0) return;
  if (Status sent = send_parameters(session); !sent.ok()) session.close(std::move(sent).error());
}

void Coordinator::drained(Session& session) {
  if (phase_ != Phase::training || options_.config.mode != Mode::sync) return;
  send_newest(session);
  send_ahead(session);
}

void Coordinator::tell(Session& session, const Contribution& contribution) {
  NodeSummary& tally = session.tally;
  tally.compute_seconds += computing_of(contribution).seconds;
  tally.lanes = std::max<std::uint64_t>(tally.lanes, contribution.lanes);
  tally.network_seconds += static_cast<double>(contribution.wait_ns) * 1e-9;
  tally.compression_seconds += static_cast<double>(contribution.codec_ns) * 1e-9;
}

Status Coordinator::contributed(Session& session, const Contribution& contribution,
                                Reduction::Buffer values) {
  tell(session, contribution);
  forget_landing(session.id());
  if (phase_ != Phase::training) {
    learner_->give_back(std::move(values));
    return {};
  }
  if (contribution.samples == 0) {
    round_->answered_nothing(session.id());
    // Only void leases are answered with nothing; whoever says so of one that stands will not compute it.
    (void)round_->reject(session.id(), contribution.lease_id, contribution.block);
  } else if (!values) {
    W5XDE_CHECK(evaluation_answer(session, contribution));
  } else {
    W5XDE_CHECK(train_answer(session, contribution, std::move(values)));
  }
  advance();
  pump();
  return {};
}

bool Coordinator::too_stale(const Contribution& contribution) const {
  return options_.config.mode == Mode::async && contribution.version <= learner_->version() &&
         learner_->version() - contribution.version > kRefusedStaleness * options_.config.max_staleness;
}

Status Coordinator::train_answer(Session& session, const Contribution& contribution,
                                 Reduction::Buffer values) {
  const std::span<const float> floats(reinterpret_cast<const float*>(values->data()), learner_->floats());
  if (!std::isfinite(contribution.loss_sum) || !all_finite(floats)) {
    learner_->give_back(std::move(values));
    return bad_answer(session, contribution);
  }
  if (too_stale(contribution) && round_->reject(session.id(), contribution.lease_id, contribution.block)) {
    learner_->give_back(std::move(values));
    return {};
  }
  if (session.has_feedback()) feedback_->changed(session.id());
  if (session.tally.batches == 0) measure_link(session);  // how much it is given next depends on it
  const auto verdict = round_->answer(session.id(), contribution.lease_id, contribution.block,
                                      computing_of(contribution), loop_.now());
  if (verdict == Round::Verdict::unknown) return corrupt("a contribution to a lease that it does not have");
  if (verdict == Round::Verdict::duplicate) {
    learner_->give_back(std::move(values));
    return {};
  }
  NodeSummary& tally = session.tally;
  const double loss = contribution.loss_sum / static_cast<double>(contribution.samples);
  if (tally.batches == 0) tally.loss.first = loss;
  tally.loss.last = loss;
  const double before = tally.batches == 0 ? 0 : tally.loss.mean * static_cast<double>(tally.batches);
  tally.batches += contribution.block.slot_count;
  tally.loss.mean = (before + loss * contribution.block.slot_count) / static_cast<double>(tally.batches);

  if (options_.config.mode == Mode::async) {
    waiting_.push_back({contribution, std::move(values)});
    return {};
  }
  forget_landings(contribution.block);  // another node's, of the same slots
  return reduction_->add(contribution.block, std::move(values), {contribution.loss_sum, contribution.samples},
                         &pool_, learner_->spare());
}

// Not a number: a broken node, or a run that has diverged. The same slots are tried once more; if they come
// to the same, it is the run.
Status Coordinator::bad_answer(Session& session, const Contribution& contribution) {
  if (!round_->reject(session.id(), contribution.lease_id, contribution.block)) return {};
  event(fmt::format("{} answered slots {}…{} of step {} with numbers that are none", session.name(),
                    contribution.block.first_slot, contribution.block.end() - 1, contribution.step));
  if (++bad_answers_[{contribution.step, contribution.block}] < 2) return {};
  fail(
      invalid(fmt::format("training diverged at step {}: the gradient of slots {}…{} is not finite, twice. "
                          "Lower --learning-rate or set --clip-norm, and go on from the last checkpoint",
                          contribution.step, contribution.block.first_slot, contribution.block.end() - 1)));
  return {};
}

Status Coordinator::evaluation_answer(Session& session, const Contribution& contribution) {
  const auto verdict = round_->answer(session.id(), contribution.lease_id, contribution.block,
                                      computing_of(contribution), loop_.now());
  if (verdict == Round::Verdict::unknown) return corrupt("an evaluation that nobody asked for");
  if (verdict == Round::Verdict::accepted) evaluations_[contribution.block.first_slot] = contribution;
  return {};
}

}  // namespace w5xde
