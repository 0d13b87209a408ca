#include "coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "coordinator/socket_options.h"
#include "learn/seeds.h"
#include "lease/tuning.h"

namespace w5xde {

namespace {

Learner::Counts learner_counts(const CheckpointInfo& info) {
  return {info.version, info.optimizer_steps, info.steps_without_gradient};
}

// How long nodes have to finish what they hold when a run is stopped: an async one, or one that has taken
// parts of a step.
constexpr auto kStopPatience = std::chrono::seconds(5);
// Past max_staleness a contribution counts less, past this many times that it is refused.
constexpr std::uint64_t kRefusedStaleness = 4;
// async: contributions that wait while commits do, beside those that are out.
constexpr std::size_t kWaitingPerNode = 2;

Computing computing_of(const Contribution& contribution) {
  return {static_cast<double>(contribution.compute_ns) * 1e-9, contribution.lanes};
}

}  // namespace

Coordinator::Coordinator(Loop& loop, Options options, RunFolder folder, const Log& log)
    : loop_(loop),
      options_(std::move(options)),
      log_(log),
      pool_(options_.threads),
      step_(&pool_),
      tally_(loop, recorder_, log),
      checkpoints_(loop, recorder_, tally_,
                   {.every = duration_of(options_.config.checkpoint_seconds),
                    .retry = options_.checkpoint_retry,
                    .keep = options_.config.keep}),
      background_(loop.background()),
      recorder_(loop, std::move(folder), options_.database, log) {}

Coordinator::~Coordinator() {
  loop_.cancel(tick_timer_);
  loop_.cancel(parts_timer_);
}

Result<std::unique_ptr<Coordinator>> Coordinator::start(Loop& loop, const Listen& listen, Options options,
                                                        RunFolder folder, const Log& log) {
  std::unique_ptr<Coordinator> self(new Coordinator(loop, std::move(options), std::move(folder), log));
  W5XDE_TRY(self->listener_,
            listen([raw = self.get()](std::unique_ptr<Stream> stream) { raw->accept(std::move(stream)); }));
  self->arm_tick();
  return self;
}

void Coordinator::accept(std::unique_ptr<Stream> stream) {
  if (over() || !has_room_for(*stream)) return;
  const NodeId id = next_node_++;
  Session::Host& host = *this;
  sessions_[id] = std::make_unique<Session>(id, host, std::move(stream),
                                            socket_options(options_.config.transport), &pool_, log_);
}

bool Coordinator::has_room_for(const Stream& newcomer) const {
  constexpr Limits kLimits;
  const std::string host = host_of(newcomer);
  std::uint64_t strangers = 0, neighbours = 0;
  for (const auto* members : {&sessions_, &parting_}) {
    for (const auto& [id, session] : *members) {
      if (session->is_ready()) continue;
      ++strangers;
      if (session->host() == host) ++neighbours;
    }
  }
  const bool room = sessions_.size() + parting_.size() < kLimits.connections_max &&
                    strangers < kLimits.strangers_max && neighbours < kLimits.strangers_per_address_max;
  if (!room)
    log_.verbose("no room for {}: {} are not ready yet, {} of them from there", newcomer.peer(), strangers,
                 neighbours);
  return room;
}

Status Coordinator::begin(Material material) {
  const RunConfig& config = options_.config;
  const CheckpointInfo& from = material.checkpoint.info();
  W5XDE_TRY(samples_, LeaseSamples::make(config, material.data, material.evaluation, &pool_));
  const std::uint64_t slots_per_epoch = samples_->sampler().slots_per_epoch();
  OptimizerOptions optimizer = config.optimizer;
  if (CodecChoice::nodes_gather_momentum(config)) optimizer.momentum = 0;
  W5XDE_TRY(const Schedule schedule, config.schedule_over(config.steps_total(slots_per_epoch)));
  W5XDE_TRY(
      learner_,
      Learner::from(material.checkpoint, learner_counts(material.checkpoint.info()),
                    {.optimizer = optimizer, .schedule = schedule, .clip_norm = config.clip_norm}, &pool_));
  shape_ = {learner_->parameters(), learner_->floats()};
  W5XDE_CHECK(begin_transfer(material.checkpoint));
  round_.emplace(
      Round::Options{.mode = config.mode,
                     .slots = config.step_slots(),
                     .slots_total = config.slots_total(slots_per_epoch),
                     .first_step = from.step,
                     .first_slot = from.data_cursor(),
                     .slots_ahead = from.slots_ahead,
                     .grain = lease_grain(config.transport.gradient_codec.codec, config.step_slots()),
                     .steps_total = config.steps,
                     .lease_slots_max = samples_->slots_max(Work::train),
                     .halves = config.growth.grows(),
                     .fastest = config.transport.who_works == WhoWorks::fastest,
                     .lanes = config.threads == 1});
  W5XDE_CHECK(begin_growth(from));
  begin_step();
  tally_.resume(from, config.mode == Mode::sync ? from.step : learner_->version());
  set_pace();
  begin_evaluations(material);
  offer_ = make_offer(material);
  material_.emplace(std::move(material));
  for (auto& [id, session] : sessions_) session->offer();
  if (run_over()) start_training();  // a finished run that is started again only says so
  return {};
}

void Coordinator::begin_evaluations(const Material& material) {
  // The best checkpoint stays that until an evaluation is better than its own.
  Evaluations::Options options{.target_accuracy = options_.config.target_accuracy};
  const RunFolder& folder = recorder_.folder();
  if (const auto best = CheckpointFile::open(folder.best_checkpoint(), folder.disk()); best.ok())
    options.best_loss = best->info().evaluation_loss;
  options.slots = samples_->evaluation_slots();
  // A model with a loss of its own gives no outputs that could be compared with classes.
  options.classifies = material.evaluation && material.evaluation->classes() > 0 && material.loss != "own";
  evaluations_ = Evaluations(options);
}

void Coordinator::arm_tick() {
  tick_timer_ = loop_.after(kTick, [this] {
    tick();
    if (!over()) arm_tick();
  });
}

void Coordinator::tick() {
  if (!running()) return;
  const Instant now = loop_.now();
  const RunConfig& config = options_.config;
  if (phase_ == Phase::training && out_of_time()) close_run();
  if (stopping() && !checkpoints_.in_progress() && !busy_ && now - *stop_asked_ > kStopPatience) {
    if (config.mode == Mode::sync) {
      log_.error("the nodes did not finish in time; the run goes on from the last checkpoint");
      return end(Status());
    }
    phase_ = Phase::abandoning;
  }
  if (busy_) return;
  // An async run has a cursor only when nothing is out.
  if (config.mode == Mode::async && checkpoints_.is_due()) round_->hold(true);
  advance();
  if (!running()) return;
  choose_codecs();
  bring_up_to_date();
  hand_over_feedback();
  drop_silent();
  pump();
  if (tally_.progress_due()) {
    measure_links();
    if (on_progress) on_progress(status());
  }
}

Status Coordinator::ready(Session& session) {
  const Ready& about = session.about();
  Place place{.name = session.name(), .lanes = about.lanes, .host = session.host()};
  if (options_.config.turns) place.machine = about.machine;
  round_->join(session.id(), place, swap_in_seconds(session));
  round_->set_up_to_date(session.id(), !calls_newcomers());
  round_->set_exchange_seconds(session.id(), session.exchange_seconds());
  tally_.joined(session.id(), session.name(), session.peer(), about);
  if (phase_ == Phase::waiting && round_->nodes() >= options_.nodes_awaited) start_training();
  if (phase_ != Phase::waiting) pump();
  return {};
}

void Coordinator::start_training() {
  phase_ = Phase::training;
  tally_.begin();
  checkpoints_.set_due();
  advance();
}

void Coordinator::ended(Session& session, const Error& reason) {
  const NodeId id = session.id();
  parting_.insert(sessions_.extract(id));
  if (session.is_ready()) {
    if (running()) record_standing(id);
    round_->leave(id);
    step_.forget_landing(id);
    feedback_gone(session);
    catching_up_.erase(id);
    if (phase_ != Phase::ended) tally_.record_departure(id, reason.message);
    tally_.left(id, traffic_of(session), reason.message);
    if (running()) tally_.event(fmt::format("{} left: {}", session.name(), reason.message));
    if (running() && reason.kind == ErrorKind::invalid && nobody_can(session, reason)) fail(reason);
  } else if (!session.name().empty()) {
    log_.normal("{} ({}) did not come in: {}", session.name(), session.peer(), reason.message);
  } else {
    log_.verbose("{}: {}", session.peer(), reason.message);
  }
  if (running()) pump();
}

// One node that cannot compute may be broken; what two different nodes cannot, or the last one, nobody will.
bool Coordinator::nobody_can(const Session& session, const Error& reason) {
  const bool agreed = checks_.unable(session.identity(), reason.message, session.oldest_lease());
  return agreed || round_->nodes() == 0;
}

// Leases go out as the round hands them out; a node that is to compute now gets the parameters first.
void Coordinator::pump() {
  if (!running() || busy_) return;
  // Each that waits for the gate is as large as the model.
  round_->pause_training(!gate_open() && waiting_.size() >= kWaitingPerNode * round_->nodes());
  for (const Grant& grant : round_->grants(loop_.now())) {
    if (Status sent = send(grant); !sent.ok()) sessions_.at(grant.node)->close(std::move(sent).error());
  }
}

Status Coordinator::send(const Grant& grant) {
  Session& session = *sessions_.at(grant.node);
  if (stopping()) stop_asked_ = loop_.now();  // it is for a step that is to be ended
  const bool train = grant.work == Work::train;
  const bool now = !train || options_.config.mode == Mode::async || grant.step == round_->front_step();
  if (now && session.version_sent() != learner_->version()) W5XDE_CHECK(send_parameters(session));
  // In sync the version of a step's parameters is known before they are: they are those of the step's number.
  const std::uint64_t ahead =
      options_.config.mode == Mode::sync && train ? grant.step - round_->front_step() : 0;
  return session.send_lease(grant, learner_->version() + ahead, step_seed(options_.config.seed, grant.step),
                            uses_cache(session)
                                ? samples_->make_lacking(grant, round_->step_slots(), session.kept())
                                : samples_->make_batch(grant, round_->step_slots()),
                            {.generic = options_.config.transport.generic(),
                             .codec = codecs_.codec_down(),
                             .answer = codecs_.answer_form(session.id())});
}

// To a node that has leases of the new front step already. One that has not even taken the last version (it
// is slow, or frozen) gets the newest when it has: nothing piles up for it.
void Coordinator::send_newest(Session& session) {
  if (!session.is_ready() || !session.awaits(learner_->version())) return;
  if (session.version_sent() != kNoVersion && session.connection().queued_bytes() > 0) return;
  if (Status sent = send_parameters(session); !sent.ok()) session.close(std::move(sent).error());
}

void Coordinator::drained(Session& session) {
  if (!running() || options_.config.mode != Mode::sync || busy_) return;
  send_newest(session);
  send_ahead(session);
}

Status Coordinator::contributed(Session& session, const Contribution& contribution,
                                Reduction::Buffer values) {
  tally_.computed(session.id(), contribution);
  step_.forget_landing(session.id());
  if (!running()) {
    learner_->give_back(std::move(values));
    return {};
  }
  if (contribution.samples == 0) {
    // A node finds a lease void when it has a newer version than the lease's: the step was committed without
    // it, or the evaluation is over. Whoever says so of a lease that stands will not compute it.
    if (round_->holds(session.id(), contribution.lease_id))
      return corrupt("nothing in answer to a lease that stands");
    round_->answered_nothing(session.id());
  } else if (!values) {
    W5XDE_CHECK(evaluation_answer(session, contribution));
  } else {
    Arrived arrived{session.id(), contribution, std::move(values), session.arriving_finite()};
    if (busy_) {
      arrived_.push_back(std::move(arrived));
    } else {
      check(std::move(arrived));
    }
    return {};
  }
  advance();
  pump();
  return {};
}

// What came in parts was looked at as it landed.
void Coordinator::check(Arrived arrived) {
  const std::uint64_t floats = arrived.contribution.first_float > 0 ? 0 : learner_->floats();
  const auto look = [floats](Arrived& at) {
    const std::span<const float> values(reinterpret_cast<const float*>(at.values->data()), floats);
    at.finite = at.finite && std::isfinite(at.contribution.loss_sum) && all_finite(values);
  };
  if (floats <= options_.inline_floats) {
    look(arrived);
    return answered(std::move(arrived));
  }
  const auto shared = std::make_shared<Arrived>(std::move(arrived));
  heavy(
      floats, [shared, look] { look(*shared); }, [this, shared] { answered(std::move(*shared)); });
}

void Coordinator::answered(Arrived arrived) {
  const auto found = sessions_.find(arrived.node);
  // Its slots were leased again when it went.
  if (found == sessions_.end() || !running()) return learner_->give_back(std::move(arrived.values));
  if (Status status = train_answer(*found->second, arrived); !status.ok())
    found->second->close(std::move(status).error());
  advance();
  pump();
}

void Coordinator::add_up(const Contribution& contribution, Reduction::Buffer values) {
  const Sums sums{contribution.loss_sum, contribution.samples};
  const std::uint64_t floats = learner_->floats() - step_.taken();
  if (floats <= options_.inline_floats) {
    const Status added = step_.add(contribution.block, std::move(values), sums, learner_->spare());
    if (!added.ok()) fail(added.error());
    return;
  }
  struct Addition {
    Reduction::Buffer values;
    std::vector<Reduction::Buffer> spare;
    Status status;
  };
  const auto addition = std::make_shared<Addition>(Addition{.values = std::move(values)});
  heavy(
      floats,
      [this, addition, sums, block = contribution.block] {
        addition->status = step_.add(block, std::move(addition->values), sums, addition->spare);
      },
      [this, addition] {
        for (auto& buffer : addition->spare) learner_->give_back(std::move(buffer));
        if (!addition->status.ok()) fail(addition->status.error());
      });
}

bool Coordinator::too_stale(const Contribution& contribution) const {
  return options_.config.mode == Mode::async && contribution.version <= learner_->version() &&
         learner_->version() - contribution.version > kRefusedStaleness * options_.config.max_staleness;
}

Status Coordinator::train_answer(Session& session, Arrived& arrived) {
  const Contribution& contribution = arrived.contribution;
  W5XDE_TRY(const bool counted, take_answer(session, arrived));
  const bool stateless =
      contribution.coding.form != Form::gradient || from_wire(contribution.coding).stateless();
  if (stateless) return {};
  if (stopping()) stop_asked_ = loop_.now();  // the step that must end goes on
  // One that does not count is undone by its sender: a copy from before is good still.
  if (counted) {
    checkpoints_.feedback().changed(session.id());
    if (options_.config.mode == Mode::sync) step_.feedback_changed();
  }
  return session.send_verdict(contribution.lease_id, counted);
}

Result<bool> Coordinator::take_answer(Session& session, Arrived& arrived) {
  const Contribution& contribution = arrived.contribution;
  Reduction::Buffer values = std::move(arrived.values);
  if (!arrived.finite) {
    learner_->give_back(std::move(values));
    W5XDE_CHECK(bad_answer(session, contribution));
    return false;
  }
  if (too_stale(contribution) &&
      round_->reject(session.id(), contribution.lease_id, contribution.block) != Round::Rejection::unknown) {
    learner_->give_back(std::move(values));
    return false;
  }
  if (tally_.batches_of(session.id()) == 0) measure_link(session);  // how much it is given next depends on it
  const auto verdict = round_->answer(session.id(), contribution.lease_id, contribution.block,
                                      computing_of(contribution), loop_.now());
  if (verdict == Round::Verdict::unknown) return corrupt("a contribution to a lease that it does not have");
  if (verdict == Round::Verdict::duplicate) {
    learner_->give_back(std::move(values));
    return false;
  }
  drop_refuted(session, contribution);
  tally_.counted(session.id(), contribution);
  if (options_.config.mode == Mode::async) {
    waiting_.push_back({contribution, std::move(values)});
    return true;
  }
  step_.answered(contribution.block);  // another node's, of the same slots
  add_up(contribution, std::move(values));
  return true;
}

// Not finite: a broken node, or a run that has diverged. Another node computes the same slots, and decides.
Status Coordinator::bad_answer(Session& session, const Contribution& contribution) {
  const SlotBlock block = contribution.block;
  const auto rejection = round_->reject(session.id(), contribution.lease_id, block, Round::Next::another);
  if (rejection == Round::Rejection::unknown) return {};
  if (rejection == Round::Rejection::settled) return AnswerChecks::refuted(contribution);
  tally_.event(fmt::format("the gradient that {} computed of slots {}…{} of step {} is not finite",
                           session.name(), block.first_slot, block.end() - 1, contribution.step));
  const bool alone = round_->nodes_on_time() <= 1;
  if (auto error = checks_.not_finite(contribution, session.id(), session.identity(), alone))
    fail(std::move(*error));
  return {};
}

void Coordinator::drop_refuted(const Session& session, const Contribution& contribution) {
  for (const NodeId id : checks_.refuted_by(contribution, session.identity())) {
    if (const auto node = sessions_.find(id); node != sessions_.end())
      node->second->close(AnswerChecks::refuted(contribution));
  }
}

Status Coordinator::evaluation_answer(Session& session, const Contribution& contribution) {
  const auto verdict = round_->answer(session.id(), contribution.lease_id, contribution.block,
                                      computing_of(contribution), loop_.now());
  if (verdict == Round::Verdict::unknown) return corrupt("an evaluation that nobody asked for");
  if (verdict == Round::Verdict::accepted) evaluations_.add(contribution);
  return {};
}

}  // namespace w5xde
