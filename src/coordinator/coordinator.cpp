#include "coordinator/coordinator.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>

#include "base/errors.h"
#include "coordinator/socket_options.h"
#include "lease/tuning.h"

namespace w5xde {

namespace {

// How long nodes of a stopped run have to finish an async lease, or a step of which parts are taken.
constexpr auto kStopPatience = std::chrono::seconds(5);
// async: contributions that wait while commits do, beside those that are out.
constexpr std::size_t kWaitingPerNode = 2;

}  // namespace

Coordinator::Coordinator(Loop& loop, Options options, RunFolder folder, const Log& log)
    : loop_(loop),
      options_(std::move(options)),
      log_(log),
      pool_(options_.threads),
      sessions_(*this, socket_options(options_.config.transport), &pool_, log),
      feedback_(loop, sessions_),
      training_(loop, *this, options_.config, options_.inline_floats, &pool_),
      tally_(loop, recorder_, log),
      checkpoints_(loop, recorder_, tally_,
                   {.every = duration_of(options_.config.checkpoint_seconds),
                    .retry = options_.checkpoint_retry,
                    .keep = options_.config.keep}),
      recorder_(loop, std::move(folder), options_.database, log) {}

Result<std::unique_ptr<Coordinator>> Coordinator::start(Loop& loop, const Listen& listen, Options options,
                                                        RunFolder folder, const Log& log) {
  std::unique_ptr<Coordinator> self(new Coordinator(loop, std::move(options), std::move(folder), log));
  W5XDE_TRY(self->listener_, listen([raw = self.get()](std::unique_ptr<Stream> stream) {
              if (!raw->over()) raw->sessions_.accept(std::move(stream));
            }));
  self->arm_tick();
  return self;
}

Status Coordinator::begin(RunMaterial material) {
  const RunConfig& config = options_.config;
  const CheckpointInfo& from = material.checkpoint.info();
  const LeaseSamples::Beside beside{loop_, &pool_, [this] { pump(); }};
  W5XDE_TRY(samples_, LeaseSamples::make(config, material.data, material.evaluation, beside));
  const bool shares = shares_memory(config, material.checkpoint, options_.shared_bytes_min);
  W5XDE_CHECK(training_.resume(material.checkpoint, samples_->sampler().slots_per_epoch(), shares));
  const Learner& learner = training_.learner();
  shape_ = {learner.parameters(), learner.floats()};
  round_.emplace(round_options(config, from, *samples_));
  transfers_.emplace(Transfers::Pool{loop_, config, sessions_, training_, *round_, *samples_, &pool_, shares},
                     shape_);
  answers_.emplace(loop_, sessions_, *round_, tally_);
  W5XDE_CHECK(transfers_->resume(material.checkpoint));
  W5XDE_CHECK(feedback_.resume(material.checkpoint, shape_.parameters));
  W5XDE_CHECK(training_.begin_steps(from, *round_));
  checkpoints_.resume(from.version);
  tally_.resume(from, sync() ? from.step : learner.version());
  training_.set_pace(*round_, tally_.slots_committed());
  evaluations_ = Evaluations(evaluation_options(config, material, *samples_, recorder_.folder()));
  offer_ = make_offer(options_.run, config, material, learner.model_fingerprint());
  model_file_ = std::move(material.model_file);
  sessions_.offer();
  if (run_over()) start_training();  // a finished run that is started again only says so
  return {};
}

void Coordinator::arm_tick() {
  tick_timer_ = loop_.after(kTick, [this] {
    tick();
    if (!over()) arm_tick();
  });
}

void Coordinator::tick() {
  if (!running()) return;
  if (phase_ == Phase::training && out_of_time()) begin_no_step(Phase::closing);
  const bool idle = !checkpoints_.in_progress() && !training_.busy();
  if (stopping() && idle && loop_.now() - stop_progress_ > kStopPatience) {
    if (sync()) {
      log_.error("the nodes did not finish in time; the run goes on from the last checkpoint");
      return end(Status());
    }
    phase_ = Phase::abandoning;
  }
  if (training_.busy()) return;
  // An async run has a cursor only when nothing is out.
  if (!sync() && checkpoints_.is_due()) round_->hold(true);
  advance();
  // A step may have begun beside the loop: what follows looks at what that changes.
  if (!running() || training_.busy()) return;
  // While a checkpoint is written, what nodes were shown must stay.
  if (!checkpoints_.in_progress()) transfers_->choose_codecs();
  transfers_->bring_up_to_date();
  if (!checkpoints_.in_progress()) feedback_.hand_over(round_->roster(), transfers_->codecs());
  feedback_.drop_silent();
  pump();
  if (tally_.progress_due()) {
    recorder_.flush();  // for who reads the folder meanwhile
    transfers_->measure_links();
    if (on_progress) on_progress(status());
  }
}

// Nodes come and go.

Status Coordinator::ready(Session& session) {
  const NodeId id = session.id();
  const Ready& about = session.about();
  Place place{.name = session.name(), .lanes = about.lanes, .host = session.host()};
  if (options_.config.turns) place.machine = about.machine;
  round_->join(id, place, transfers_->swap_in_seconds(session));
  round_->set_up_to_date(id, !transfers_->newcomers_catch_up());
  round_->set_exchange_seconds(id, session.exchange_seconds(transfers_->answer_bytes(session)));
  tally_.joined(id, session.name(), session.peer(), about);
  if (phase_ == Phase::waiting && round_->nodes() >= options_.nodes_awaited) start_training();
  if (phase_ != Phase::waiting) pump();
  return {};
}

void Coordinator::start_training() {
  phase_ = Phase::training;
  tally_.begin();
  checkpoints_.set_due();
  // A checkpoint may have been written while its version was evaluated.
  if (evaluation_due() && !evaluations_.has_counted(training_.learner().version()) && !run_over())
    begin_evaluation(Evaluations::Kind::on_the_way);
  advance();
}

void Coordinator::ended(Session& session, const Error& reason) {
  const NodeId id = session.id();
  sessions_.part(id);
  if (session.is_ready()) {
    if (running()) tally_.stood(id, round_->roster());
    round_->leave(id);
    training_.step().forget_landing(id);
    if (session.has_feedback() && running()) tally_.feedback_lost(session.name());
    feedback_.gone(id);
    write_once_gathered();
    if (phase_ != Phase::ended) tally_.record_departure(id, reason.message);
    tally_.left(id, report().traffic_of(session), reason.message);
    transfers_->forget(id);
    if (running()) tally_.event(fmt::format("{} left: {}", session.name(), reason.message));
    if (running() && reason.kind == ErrorKind::invalid && answers_->nobody_can(session, reason.message))
      fail(reason);
  } else if (session.is_node()) {
    log_.normal("{} ({}) did not come in: {}", session.name(), session.peer(), reason.message);
  } else {
    log_.verbose("{}: {}", session.peer(), reason.message);
  }
  if (running()) pump();
}

Status Coordinator::fed_back(Session& session, const Feedback& about, std::span<const float> feedback) {
  if (about.leaving) round_->set_leaving(session.id());
  const bool rests = round_->roster().limited() && !round_->roster().at(session.id()).works();
  W5XDE_CHECK(feedback_.received(session, about, feedback, rests || run_over()));
  write_once_gathered();
  return {};
}

// Leases go out, contributions come in.

void Coordinator::pump() {
  if (!running() || training_.busy() || failure_) return;
  // Each that waits for the gate is as large as the model.
  round_->pause_training(!gate_open() && training_.waiting() >= kWaitingPerNode * round_->nodes());
  for (const Grant& grant : transfers_->with_samples(round_->grants(loop_.now()))) {
    if (stopping()) stop_progress_ = loop_.now();  // it is for a step that is to be ended
    Session& session = sessions_.at(grant.node);
    auto batch = transfers_->make_batch(session, grant);
    if (!batch.ok()) return fail_once_saved(std::move(batch).error().within("reading the data"));
    session.close_unless(transfers_->send_lease(session, grant, *std::move(batch)));
  }
}

void Coordinator::drained(Session& session) {
  if (!running() || !sync() || training_.busy() || !session.is_ready()) return;
  transfers_->send_newest(session);
  if (!stopping()) transfers_->send_ahead(session);
}

Status Coordinator::landing(Session& session, const Contribution& contribution, std::span<float> values,
                            std::uint64_t landed) {
  if (!running() || !sync()) return {};
  const bool awaited = round_->awaits(session.id(), contribution.lease_id);
  // A step that is begun is ended as long as it makes progress, from any node.
  if (stopping() && awaited) stop_progress_ = loop_.now();
  // One that is not finite is dealt with when all of it is here.
  if (!std::isfinite(contribution.loss_sum) || !session.arriving_finite()) {
    training_.step().forget_landing(session.id());
  } else if (training_.land(session.id(), contribution, values, landed, awaited)) {
    parts_due();
  }
  return {};
}

Status Coordinator::contributed(Session& session, const Contribution& contribution,
                                Reduction::Buffer values) {
  tally_.computed(session.id(), contribution);
  training_.step().forget_landing(session.id());
  if (!running()) {
    training_.learner().give_back(std::move(values));
    return {};
  }
  if (contribution.samples > 0 && values) {
    training_.check({session.id(), contribution, std::move(values), session.arriving_finite()});
    return {};
  }
  if (contribution.samples > 0) {
    W5XDE_TRY(const bool counts, answers_->evaluation_counts(session, contribution));
    if (counts) evaluations_.add(contribution);
  } else {
    // A node that will not compute a lease that stands may still write: its memory is not used again.
    W5XDE_CHECK(answers_->is_void(session, contribution));
    training_.learner().give_back(std::move(values));
  }
  advance();
  pump();
  return {};
}

void Coordinator::checked(Training::Arrived arrived) {
  Session* session = sessions_.find(arrived.node);
  // Its slots were leased again when it went.
  if (session == nullptr || !running()) return training_.learner().give_back(std::move(arrived.values));
  Status status = train_answer(*session, arrived);
  if (!status.ok() && status.error().kind == ErrorKind::diverged) {
    const Contribution& of = arrived.contribution;
    const Status data = samples_->check_finite(round_->step_slots(), of.step, of.block);
    return fail(data.ok() ? status.error() : data.error());
  }
  session->close_unless(std::move(status));
  advance();
  pump();
}

Status Coordinator::train_answer(Session& session, Training::Arrived& arrived) {
  using Quality = Answers::Quality;
  const Contribution& contribution = arrived.contribution;
  const Quality quality = !arrived.finite                     ? Quality::not_finite
                          : training_.too_stale(contribution) ? Quality::too_stale
                                                              : Quality::good;
  // How much it is given next depends on it.
  if (tally_.batches_of(session.id()) == 0) transfers_->measure_link(session);
  const Result<bool> counts = answers_->counts(session, contribution, quality);
  if (counts.ok() && *counts) {
    training_.add(contribution, std::move(arrived.values));
  } else {
    training_.learner().give_back(std::move(arrived.values));
  }
  if (!counts.ok()) return counts.error();
  if (!has_feedback(contribution.coding)) return {};
  if (stopping()) stop_progress_ = loop_.now();  // the step that must end goes on
  // One that does not count is undone by its sender: a copy from before is good still.
  if (*counts) {
    feedback_.changed(session.id());
    if (sync()) training_.step().feedback_changed();
  }
  return session.send_verdict(contribution.lease_id, *counts);
}

// Contributions become versions, versions are evaluated and saved, and at some point the run is over.

void Coordinator::advance() {
  if (!running() || training_.busy()) return;
  // The best version is saved at once: not while another checkpoint is written.
  if (evaluations_.in_progress() && !checkpoints_.in_progress() && round_->evaluation_complete())
    end_evaluation();
  if (sync()) {
    while (running() && !training_.busy() && gate_open() && round_->front_complete() && may_step())
      training_.take_step(transfers_->broadcast());
    parts_due();
  } else {
    commit_async();
  }
  if (running() && !training_.busy()) try_finish();
}

void Coordinator::idle() {
  advance();
  pump();
  sessions_.each_ready([this](Session& session) {
    if (session.connection().queued_bytes() == 0) drained(session);
  });
}

void Coordinator::parts_due() {
  if (!running() || !gate_open() || !may_step() || !transfers_->codecs().by_parts()) return;
  if (training_.take_part(transfers_->codecs().part_floats()) && !stopping()) transfers_->send_ahead_to_all();
}

bool Coordinator::step_must_end() const {
  const StepInProgress& step = training_.step();
  return training_.learner().next() || step.has_changed_feedback() ||
         (step.is_out() && sessions_.any_has_feedback());
}

void Coordinator::step_taken(const Sums& sums) {
  const std::uint64_t first_slot = round_->step_slots().first_slot_of(round_->front_step());
  const std::uint32_t slots = round_->slots_of(round_->front_step());
  round_->commit(loop_.now());
  if (const auto growth = training_.next_step(*round_))
    tally_.event("the global batch grows from " + to_text(*growth));
  tally_.set_step(round_->front_step());
  // What a checkpoint asks of the nodes comes before what makes them go on.
  const bool due = checkpoints_.is_due();
  if (!due && !stopping()) transfers_->send_newest_to_all();
  committed({sums.loss / static_cast<double>(sums.samples), sums.samples, first_slot, slots});
  if (!due) return;
  write_checkpoint();
  if (running() && !stopping()) transfers_->send_newest_to_all();
}

void Coordinator::commit_async() {
  const auto may_go_on = [this] { return !training_.busy() && gate_open() && running(); };
  while (may_go_on() && training_.waiting() > 0) training_.apply_oldest();
  if (!may_go_on()) return;
  tally_.set_step(round_->front_step());
  if (round_->drained() && checkpoints_.is_due() && !stopping()) write_checkpoint();
}

void Coordinator::applied(const Contribution& contribution) {
  const std::uint64_t first_slot = round_->step_slots().first_slot_of(contribution.step);
  committed({contribution.loss_sum / static_cast<double>(contribution.samples), contribution.samples,
             first_slot + contribution.block.first_slot, contribution.block.slot_count});
}

void Coordinator::committed(const Tally::Commit& commit) {
  tally_.committed(commit);
  training_.set_pace(*round_, tally_.slots_committed());
  if (tally_.row_due()) tally_.record_steps(report().progress());
  if (evaluation_due() && !run_over() && !drops_open_steps()) begin_evaluation(Evaluations::Kind::on_the_way);
}

// Whether it is complete or not.
void Coordinator::leave_evaluation() {
  evaluations_.leave();
  round_->end_evaluation();
  transfers_->end_exact();
}

void Coordinator::end_evaluation() {
  const std::uint64_t version = training_.learner().version();
  const auto outcome = evaluations_.finish({.version = version,
                                            .exact = transfers_->exact(),
                                            .can_be_last = sync() && transfers_->exact() && !step_must_end(),
                                            .counts = evaluation_due(),
                                            .out_of_time = out_of_time()});
  tally_.evaluated(outcome.stats, outcome.samples, report().steps_done());
  follow(outcome);
  leave_evaluation();
  const bool better = evaluations_.better_loss(version).has_value();
  // What was saved of it does not say that it is the best, or how the run's last version was judged.
  if (better || drops_open_steps() || run_over()) checkpoints_.forget_saved();
  if (!better) return;
  // What lossy codecs hold back is as much as the model, from every node: not for every evaluation.
  // And nodes have gone on meanwhile: what they hold back now is of a later step.
  const bool feedback_moved_on = sessions_.any_has_feedback() || training_.step().has_changed_feedback();
  if (sync() && !run_over() && !feedback_moved_on) write_checkpoint();
}

void Coordinator::follow(const Evaluations::Outcome& outcome) {
  using Course = Evaluations::Course;
  const bool goes_on = outcome.course == Course::goes_on;
  if (goes_on && (stopping() || out_of_time() || round_->finished())) return;
  if (!outcome.news.empty()) tally_.event(outcome.news);
  if (outcome.course == Course::ends_here) begin_no_step(Phase::settled);
  if (outcome.course == Course::ends_soon) begin_no_step(Phase::closing);
  if (!goes_on) return;
  phase_ = Phase::training;
  round_->hold(false);
}

void Coordinator::write_checkpoint() {
  assert(!checkpoints_.in_progress() && !training_.learner().next());
  checkpoints_.begin();
  tally_.record_steps(report().progress());  // a resumed run goes on with the rows up to here
  round_->disturbed();
  transfers_->freeze();
  feedback_.gather();
  write_once_gathered();
}

// Not when the run has ended meanwhile: what nodes that are sent home hold back would be missing.
void Coordinator::write_once_gathered() {
  if (!running() || !checkpoints_.begun() || feedback_.gathering()) return;
  auto blocks = training_.learner().blocks();
  for (const auto& more : {feedback_.blocks(), transfers_->blocks()})
    blocks.insert(blocks.end(), more.begin(), more.end());
  const auto best = evaluations_.better_loss(training_.learner().version());
  checkpoints_.write({report().checkpoint_info(), std::move(blocks), best.has_value()},
                     [this, best](const Status& written) {
                       if (!written.ok()) return fail(written.error());
                       if (best) evaluations_.set_best_loss(*best);
                       if (!running()) return;
                       if (!ending()) round_->hold(false);
                       advance();
                       pump();
                     });
}

void Coordinator::try_finish() {
  // A step of which parts are taken cannot be saved. An async run waits for what is out while there is
  // anybody to bring it.
  const bool stop_now =
      drops_open_steps() && (sync() ? !step_must_end() : phase_ == Phase::abandoning || round_->nodes() == 0);
  if (!gate_open() || training_.waiting() > 0 || !(stop_now || run_over())) return;
  const std::uint64_t version = training_.learner().version();
  if (!stopping() && evaluations_.possible() && !evaluations_.is_exactly_of(version)) {
    transfers_->begin_exact();
    feedback_.gather();  // for the checkpoint after it: it comes up while the parameters go down
    return begin_evaluation(Evaluations::Kind::deciding);
  }
  if (!checkpoints_.has_saved(version)) return write_checkpoint();
  end(Status());
}

void Coordinator::stop(const std::string& reason) {
  if (over() || stopping()) return;
  log_.normal("{}: saving what is committed", reason);
  stopped_early_ = true;
  stop_progress_ = loop_.now();
  if (phase_ == Phase::waiting) return end(Status());
  phase_ = Phase::stopping;
  round_->hold(true);
  // What is committed is saved at once: the nodes that evaluate may be gone already.
  if (evaluations_.in_progress()) leave_evaluation();
  advance();
}

void Coordinator::diverged_because(std::string_view how) {
  fail(
      diverged("training diverged at step {}: {}. Lower --learning-rate or set --clip-norm, and go on "
               "from the last checkpoint",
               round_->front_step(), how));
}

void Coordinator::fail(Error error) {
  if (over()) return;
  tally_.event(error.message);
  end(std::move(error));
}

void Coordinator::fail_once_saved(Error error) {
  if (step_must_end()) return fail(std::move(error));  // it cannot be: its samples are missing
  failure_ = std::move(error);
  stop(failure_->message);
}

void Coordinator::end(Status status) {
  if (status.ok() && failure_) status = *failure_;
  if (running()) tally_.record_steps(report().progress());
  sessions_.each_ready([this](const Session& session) { tally_.stood(session.id(), round_->roster()); });
  tally_.end(offer_ ? report().working() : 0);
  checkpoints_.stop_trying();
  phase_ = Phase::finishing;
  if (!on_finishing) return conclude(std::move(status));
  // After what it is doing: the summary is of all that.
  training_.run_beside(on_finishing, [this, status = std::move(status)] { conclude(status); });
}

void Coordinator::conclude(Status status) {
  training_.finish();
  const std::string farewell = !status.ok()     ? "the run failed: " + status.error().message
                               : stopped_early_ ? "the coordinator was stopped; the run can be resumed"
                                                : "the run is finished";
  sessions_.each_ready([&](const Session& session) { tally_.record_departure(session.id(), farewell); });
  recorder_.flush();
  phase_ = Phase::ended;
  // Nodes stay for a run that can be resumed.
  sessions_.close_all(status.ok() && stopped_early_ ? unavailable(farewell) : disconnected(farewell));
  listener_.reset();
  outcome_ = std::move(status);
}

StatusReport Coordinator::status() {
  StatusReport status{.run = options_.run, .mode = std::string(name_of(options_.config.mode))};
  status.phase = phase_ == Phase::waiting     ? "waiting for nodes"
                 : evaluations_.in_progress() ? "evaluating"
                                              : "training";
  if (over() || stopping()) status.phase = "finishing";
  if (checkpoints_.refused()) status.phase = "retrying a checkpoint";
  if (offer_) report().add_to(status);
  return status;
}

}  // namespace w5xde
