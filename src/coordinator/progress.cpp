// How a run goes on: contributions become versions, versions are evaluated and saved, and at some point it is
// over.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "coordinator/coordinator.h"

namespace w5xde {

namespace {

// How long peers have to hear the last word when the run has ended.
constexpr auto kFarewellPatience = std::chrono::seconds(30);

}  // namespace

// Everything that may have become possible, in order.
void Coordinator::advance() {
  if (!running() || busy_) return;
  // The best version is saved at once: not while another checkpoint is written.
  if (evaluations_.in_progress() && !checkpoints_.in_progress() && round_->evaluation_complete())
    end_evaluation();
  if (options_.config.mode == Mode::sync) {
    while (running() && !busy_ && gate_open() && round_->front_complete() && may_step()) commit_step();
    if (running()) step_parts();
  } else {
    commit_async();
  }
  if (running() && !busy_) try_finish();
}

void Coordinator::heavy(std::uint64_t floats, const std::function<void()>& work,
                        const std::function<void()>& then) {
  assert(!busy_);
  if (floats <= options_.inline_floats) {
    work();
    return then();
  }
  busy_ = true;
  background_->run(work, [this, then] {
    busy_ = false;
    then();
    go_on();
  });
}

// What had to wait while the learner was busy.
void Coordinator::go_on() {
  while (!busy_ && !arrived_.empty() && running()) {
    Arrived next = std::move(arrived_.front());
    arrived_.pop_front();
    check(std::move(next));
  }
  if (busy_ || !running()) return;
  advance();
  pump();
  for (auto& [id, session] : sessions_) {
    if (session->is_ready() && session->connection().queued_bytes() == 0) drained(*session);
  }
}

void Coordinator::commit_step() {
  const auto commit = std::make_shared<Commit>();
  commit->sum = step_.take(commit->sums);
  heavy(
      learner_->floats() - learner_->stepped(),
      [this, commit] {
        commit->applied = learner_->apply(*commit->sum, commit->sums.samples, 1);
        if (commit->applied) broadcast_->show(*learner_);
      },
      [this, commit] {
        learner_->give_back(std::move(commit->sum));
        finish_step(*commit);
      });
}

bool Coordinator::nodes_hold_feedback() const {
  return std::ranges::any_of(sessions_, [](const auto& member) { return member.second->has_feedback(); });
}

void Coordinator::finish_step(const Commit& commit) {
  if (!commit.applied) return fail_diverged("the gradient's norm is not finite");
  const Sums& sums = commit.sums;
  const std::uint64_t first_slot = round_->step_slots().first_slot_of(round_->front_step());
  const std::uint32_t slots = round_->slots_of(round_->front_step());
  round_->commit(loop_.now());
  grow();
  begin_step();
  tally_.set_step(round_->front_step());
  const auto send_all = [this] {
    if (stopping()) return;
    for (auto& [id, session] : sessions_) send_newest(*session);
  };
  // What a checkpoint asks of the nodes comes before what makes them go on.
  const bool due = checkpoints_.is_due();
  if (!due) send_all();
  committed({sums.loss / static_cast<double>(sums.samples), sums.samples, first_slot, slots});
  if (!due) return;
  write_checkpoint();
  if (running()) send_all();
}

void Coordinator::commit_async() {
  while (!busy_ && gate_open() && !waiting_.empty() && running()) commit_waiting();
  if (busy_ || !gate_open() || !waiting_.empty() || !running()) return;
  tally_.set_step(round_->front_step());
  if (round_->drained() && checkpoints_.is_due() && !stopping()) write_checkpoint();
}

void Coordinator::commit_waiting() {
  const auto next = std::make_shared<Waiting>(std::move(waiting_.front()));
  waiting_.pop_front();
  const std::uint64_t version = next->contribution.version;
  const std::uint64_t staleness = learner_->version() - std::min(learner_->version(), version);
  const std::uint64_t max = options_.config.max_staleness;
  const double weight = staleness <= max ? 1 : static_cast<double>(max) / static_cast<double>(staleness);
  const auto applied = std::make_shared<bool>(false);
  heavy(
      learner_->floats(),
      [this, next, weight, applied] {
        *applied = learner_->apply(*next->values, next->contribution.samples, weight);
      },
      [this, next, applied] {
        learner_->give_back(std::move(next->values));
        const Contribution& contribution = next->contribution;
        if (!*applied)
          return fail(
              diverged("training diverged: the gradient's norm is not finite. Lower --learning-rate"));
        const std::uint64_t first_slot = round_->step_slots().first_slot_of(contribution.step);
        committed({contribution.loss_sum / static_cast<double>(contribution.samples), contribution.samples,
                   first_slot + contribution.block.first_slot, contribution.block.slot_count});
      });
}

void Coordinator::committed(const Tally::Commit& commit) {
  tally_.committed(commit);
  set_pace();
  if (tally_.row_due()) tally_.record_steps(progress());
  const std::uint64_t every = options_.config.evaluate_every;
  if (every > 0 && learner_->version() % every == 0 && evaluations_.possible() && !run_over() && !stopping())
    begin_evaluation(Evaluations::Kind::on_the_way);
}

Tally::Progress Coordinator::progress() const {
  return {steps_done(), learner_->learning_rate(), static_cast<unsigned>(round_->nodes())};
}

void Coordinator::begin_evaluation(Evaluations::Kind kind) {
  evaluations_.begin(kind);
  round_->begin_evaluation(evaluations_.slots(), loop_.now(), samples_->slots_max(Work::evaluate));
}

// Nodes compute with what they are shown, which a lossy codec makes differ from the parameters. They go back
// to that afterwards, so that the run has the same bits whether it was judged or not. No lease of a step is
// out meanwhile.
void Coordinator::begin_deciding_evaluation() {
  if (!broadcast_->shown().empty()) {
    exact_broadcast_.emplace(shape_,
                             Broadcast::Options{options_.config.transport.generic(), codecs_.part_floats()},
                             &pool_, loop_);
    for (auto& [id, session] : sessions_) session->forget_version();
  }
  gather_feedback();  // for the checkpoint after it: it comes up while the parameters go down
  begin_evaluation(Evaluations::Kind::deciding);
}

// Whether it is complete or not.
void Coordinator::leave_evaluation() {
  evaluations_.leave();
  round_->end_evaluation();
  if (!exact_broadcast_) return;
  exact_broadcast_.reset();
  for (auto& [id, session] : sessions_) session->forget_version();
}

void Coordinator::end_evaluation() {
  const bool exact = exact_broadcast_ || broadcast_->shown().empty();
  const auto outcome = evaluations_.finish({learner_->version(), exact, out_of_time()});
  tally_.evaluated(outcome.stats, outcome.samples, steps_done());
  follow_target(outcome.target);
  leave_evaluation();
  if (!evaluations_.better_loss(learner_->version())) return;
  checkpoints_.forget_saved();  // what was saved of it does not say that it is the best
  // What lossy codecs hold back is as much as the model, from every node: not for every evaluation.
  // And nodes have gone on meanwhile: what they hold back now is of a later step.
  const bool feedback_moved_on = nodes_hold_feedback() || step_.has_changed_feedback();
  if (options_.config.mode == Mode::sync && !run_over() && !feedback_moved_on) write_checkpoint();
}

void Coordinator::follow_target(Evaluations::Target target) {
  const double accuracy = options_.config.target_accuracy;
  if (target == Evaluations::Target::in_sight) close_run();
  if (target == Evaluations::Target::reached)
    tally_.event(fmt::format("the target of {} is reached", accuracy));
  if (target != Evaluations::Target::missed || stopping() || out_of_time() || round_->finished()) return;
  tally_.event(
      fmt::format("the parameters themselves do not reach the target of {}: training goes on", accuracy));
  phase_ = Phase::training;
  round_->hold(false);
}

void Coordinator::close_run() {
  phase_ = Phase::closing;
  round_->hold(true);
}

bool Coordinator::run_over() const {
  return round_->finished() || (ending() && round_->drained());
}

void Coordinator::try_finish() {
  // A step of which parts are taken cannot be saved. An async run waits for what is out while there is
  // anybody to bring it.
  const bool stop_now = stopping() && (options_.config.mode == Mode::sync
                                           ? !step_must_end()
                                           : phase_ == Phase::abandoning || round_->nodes() == 0);
  if (!gate_open() || !waiting_.empty() || !(stop_now || run_over())) return;
  const bool evaluated = evaluations_.is_exactly_of(learner_->version());
  if (!stopping() && evaluations_.possible() && !evaluated) return begin_deciding_evaluation();
  if (!checkpoints_.has_saved(learner_->version())) return write_checkpoint();
  end(Status());
}

CheckpointInfo Coordinator::info() const {
  CheckpointInfo info = tally_.info(round_->step_slots().first_slot_of(tally_.step()));
  info.version = learner_->version();
  info.seed = options_.config.seed;
  info.optimizer_steps = learner_->optimizer_steps();
  info.steps_without_gradient = learner_->steps_without_gradient();
  info.slots_leased_again += round_->slots_leased_again();
  info.duplicates_dropped += round_->duplicates_dropped();
  info.model = options_.config.model;
  info.model_fingerprint = learner_->model_fingerprint();
  if (step_.global_batch() != nullptr) info.batch_growth = step_.global_batch()->state();
  return info;
}

void Coordinator::write_checkpoint() {
  assert(!checkpoints_.in_progress() && !learner_->next());
  checkpoints_.begin();
  round_->disturbed();
  broadcast_->show(*learner_);  // what nodes are shown must not change while it is written
  gather_feedback();
  if (checkpoints_.may_write()) write_gathered();
}

void Coordinator::write_gathered() {
  auto blocks = learner_->blocks();
  for (const NamedBlock& block : checkpoints_.feedback().blocks()) blocks.push_back(block);
  if (!broadcast_->shown().empty()) blocks.push_back({"shown", shape_.parameters.get(), broadcast_->shown()});
  const auto best = evaluations_.better_loss(learner_->version());
  checkpoints_.write({info(), std::move(blocks), best.has_value()}, [this, best](const Status& written) {
    if (!written.ok()) return fail(written.error());
    if (best) evaluations_.set_best_loss(*best);
    if (!running()) return;
    if (!ending()) round_->hold(false);
    advance();
    pump();
  });
}

void Coordinator::stop(const std::string& reason) {
  if (over() || stopping()) return;
  log_.normal("{}: saving what is committed", reason);
  stop_asked_ = loop_.now();
  if (phase_ == Phase::waiting) return end(Status());
  phase_ = Phase::stopping;
  round_->hold(true);
  // What is committed is saved at once: the nodes that evaluate may be gone already.
  if (evaluations_.in_progress()) leave_evaluation();
  advance();
}

void Coordinator::fail_diverged(std::string_view how) {
  fail(diverged(
      fmt::format("training diverged at step {}: {}. Lower --learning-rate or set --clip-norm, and go on "
                  "from the last checkpoint",
                  round_->front_step(), how)));
}

void Coordinator::fail(Error error) {
  if (over()) return;
  tally_.event(error.message);
  end(std::move(error));
}

void Coordinator::end(Status status) {
  if (round_ && running()) tally_.record_steps(progress());
  working_at_end_ = working();
  for (const auto& [id, session] : sessions_) {
    if (session->is_ready()) record_standing(id);
  }
  tally_.end();
  checkpoints_.stop_trying();
  phase_ = Phase::finishing;
  if (!on_finishing) return conclude(std::move(status));
  // After what it is doing: the summary is of all that.
  background_->run(on_finishing, [this, status = std::move(status)] { conclude(status); });
}

void Coordinator::conclude(Status status) {
  background_.reset();
  const std::string farewell = !status.ok()  ? "the run failed: " + status.error().message
                               : stop_asked_ ? "the coordinator was stopped; the run can be resumed"
                                             : "the run is finished";
  for (auto& [id, session] : sessions_) {
    if (session->is_ready()) tally_.record_departure(id, farewell);
  }
  recorder_.flush();
  phase_ = Phase::ended;
  for (auto& [id, session] : sessions_) session->close(disconnected(farewell));
  listener_.reset();
  outcome_ = std::move(status);
}

bool Coordinator::nodes_gone() const {
  return (sessions_.empty() && parting_.empty()) ||
         (outcome_ && loop_.now() - tally_.ended() >= kFarewellPatience);
}

std::size_t Coordinator::working() const {
  if (over()) return working_at_end_;
  return round_ && round_->roster().limited() ? round_->roster().working() : 0;
}

std::uint64_t Coordinator::steps_done() const {
  return options_.config.mode == Mode::sync ? tally_.step() : learner_->version();
}

}  // namespace w5xde
