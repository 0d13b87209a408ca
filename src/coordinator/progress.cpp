// How a run goes on: contributions become versions, versions are evaluated and saved, and at some point it is
// over.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "coordinator/coordinator.h"

namespace w5xde {

namespace {

constexpr unsigned kCheckpointTries = 6;
// How long peers have to hear the last word when the run has ended.
constexpr auto kFarewellPatience = std::chrono::seconds(30);

}  // namespace

// Everything that may have become possible, in order.
void Coordinator::advance() {
  if (phase_ != Phase::training || busy_) return;
  // The best version is saved at once: not while another checkpoint is written.
  if (evaluating_ && !writing_ && round_->evaluation_complete()) end_evaluation();
  if (options_.config.mode == Mode::sync) {
    while (phase_ == Phase::training && !busy_ && gate_open() && round_->front_complete() && may_step())
      commit_step();
    if (phase_ == Phase::training) step_parts();
  } else {
    commit_async();
  }
  if (phase_ == Phase::training && !busy_) try_finish();
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
  while (!busy_ && !arrived_.empty() && phase_ == Phase::training) {
    Arrived next = std::move(arrived_.front());
    arrived_.pop_front();
    check(std::move(next));
  }
  if (busy_ || phase_ != Phase::training) return;
  advance();
  pump();
  for (auto& [id, session] : sessions_) {
    if (session->is_ready() && session->connection().queued_bytes() == 0) drained(*session);
  }
}

void Coordinator::commit_step() {
  const auto commit = std::make_shared<Commit>();
  commit->sum = reduction_->take(commit->sums);
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
  version_out_ = feedback_of_step_ = false;
  if (!commit.applied) return fail_diverged("the gradient's norm is not finite");
  const Sums& sums = commit.sums;
  const std::uint64_t first_slot = round_->step_slots().first_slot_of(round_->front_step());
  const std::uint32_t slots = round_->slots_of(round_->front_step());
  landings_.clear();
  round_->commit(loop_.now());
  grow();
  begin_reduction();
  tally_.set_step(round_->front_step());
  const auto send_all = [this] {
    if (stopping_) return;
    for (auto& [id, session] : sessions_) send_newest(*session);
  };
  // What a checkpoint asks of the nodes comes before what makes them go on.
  const bool due = loop_.now() >= checkpoint_due_;
  if (!due) send_all();
  committed({sums.loss / static_cast<double>(sums.samples), sums.samples, first_slot, slots});
  if (!due) return;
  write_checkpoint();
  if (phase_ == Phase::training) send_all();
}

void Coordinator::commit_async() {
  while (!busy_ && gate_open() && !waiting_.empty() && phase_ == Phase::training) commit_waiting();
  if (busy_ || !gate_open() || !waiting_.empty() || phase_ != Phase::training) return;
  tally_.set_step(round_->front_step());
  if (round_->drained() && loop_.now() >= checkpoint_due_ && !stopping_) write_checkpoint();
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
  if (every > 0 && learner_->version() % every == 0 && evaluation_batches_ && !run_over() && !stopping_)
    begin_evaluation();
}

Tally::Progress Coordinator::progress() const {
  return {steps_done(), learner_->learning_rate(), static_cast<unsigned>(round_->nodes())};
}

void Coordinator::begin_evaluation() {
  evaluating_ = true;
  evaluations_.clear();
  round_->begin_evaluation(static_cast<std::uint32_t>(evaluation_batches_->sampler().slots_per_epoch()),
                           loop_.now(), evaluation_lease_size_.slots_max(may_use_cache()));
}

// Nodes compute with what they are shown, which a lossy codec makes differ from the parameters. They go back
// to that afterwards, so that the run has the same bits whether it was judged or not. No lease of a step is
// out meanwhile.
void Coordinator::begin_deciding_evaluation() {
  deciding_ = true;
  if (!broadcast_->shown().empty()) {
    exact_broadcast_.emplace(shape_, Broadcast::Options{options_.config.transport.generic(), part_floats_},
                             &pool_, loop_);
    for (auto& [id, session] : sessions_) session->forget_version();
  }
  gather_feedback();  // for the checkpoint after it: it comes up while the parameters go down
  begin_evaluation();
}

// Whether it is complete or not.
void Coordinator::leave_evaluation() {
  evaluating_ = deciding_ = false;
  evaluations_.clear();
  round_->end_evaluation();
  if (!exact_broadcast_) return;
  exact_broadcast_.reset();
  for (auto& [id, session] : sessions_) session->forget_version();
}

void Coordinator::end_evaluation() {
  // Along the tree: how the slots were cut into leases must not show.
  Reduction tree(static_cast<std::uint32_t>(evaluation_batches_->sampler().slots_per_epoch()), 0);
  std::vector<Reduction::Buffer> none;
  double correct = 0;
  for (const auto& [slot, part] : evaluations_) {
    const Sums part_sums{part.loss_sum, part.samples};
    (void)tree.add(part.block, std::make_unique<AlignedBuffer>(), part_sums, nullptr, none);
    correct += static_cast<double>(part.correct);
  }
  Sums sums;
  (void)tree.take(sums);
  const auto samples = static_cast<double>(sums.samples);
  evaluated_version_ = learner_->version();
  evaluated_exactly_ = exact_broadcast_ || broadcast_->shown().empty();
  // A model with a loss of its own gives no outputs that could be compared with classes.
  const bool classifies = material_->evaluation->classes() > 0 && material_->loss != "own";
  evaluation_ = {.loss = sums.loss / samples, .accuracy = classifies ? correct / samples : kUnknown};
  tally_.evaluated(*evaluation_, sums.samples, steps_done());
  if (options_.config.target_accuracy > 0) judge_target();
  leave_evaluation();
  if (is_best()) {
    checkpointed_version_.reset();  // what was saved of it does not say so
    // What lossy codecs hold back is as much as the model, from every node: not for every evaluation.
    // And nodes have gone on meanwhile: what they hold back now is of a later step.
    const bool feedback_moved_on = nodes_hold_feedback() || feedback_of_step_;
    if (options_.config.mode == Mode::sync && !run_over() && !feedback_moved_on) write_checkpoint();
  }
}

// An evaluation on the way may be of what nodes were shown, and steps are under way behind it. So it only
// stops new steps; when the open ones are committed, an evaluation of the parameters as they are decides.
void Coordinator::judge_target() {
  const double target = options_.config.target_accuracy;
  const bool reached = evaluation_->accuracy >= target;
  if (!target_in_sight_) {
    if (!reached || deciding_ || out_of_time_) return;
    target_in_sight_ = true;
    round_->hold(true);
    return;
  }
  if (!deciding_) return;
  if (reached) return tally_.event(fmt::format("the target of {} is reached", target));
  target_in_sight_ = false;
  if (ending() || round_->finished()) return;
  tally_.event(
      fmt::format("the parameters themselves do not reach the target of {}: training goes on", target));
  round_->hold(false);
}

// A loss that is no number is never the best.
bool Coordinator::is_best() const {
  if (evaluated_version_ != learner_->version() || !std::isfinite(evaluation_->loss)) return false;
  return !best_loss_ || !std::isfinite(*best_loss_) || evaluation_->loss < *best_loss_;
}

bool Coordinator::run_over() const {
  return round_->finished() || (ending() && round_->drained());
}

void Coordinator::try_finish() {
  // A step of which parts are taken cannot be saved. An async run waits for what is out while there is
  // anybody to bring it.
  const bool stop_now =
      stopping_ && (options_.config.mode == Mode::sync ? !step_must_end() : gave_up_ || round_->nodes() == 0);
  if (!gate_open() || !waiting_.empty() || !(stop_now || run_over())) return;
  const bool evaluated = evaluated_version_ == learner_->version() && evaluated_exactly_;
  if (!stopping_ && evaluation_batches_ && !evaluated) return begin_deciding_evaluation();
  if (checkpointed_version_ != learner_->version()) return write_checkpoint();
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
  if (global_batch_) info.batch_growth = global_batch_->state();
  return info;
}

void Coordinator::write_checkpoint() {
  assert(!writing_ && !learner_->next());
  writing_ = true;
  round_->disturbed();
  broadcast_->show(*learner_);  // what nodes are shown must not change while it is written
  gather_feedback();
  if (!feedback_->gathering()) write_gathered();
}

void Coordinator::write_gathered() {
  auto blocks = learner_->blocks();
  for (const NamedBlock& block : feedback_->blocks()) blocks.push_back(block);
  if (!broadcast_->shown().empty()) blocks.push_back({"shown", shape_.parameters.get(), broadcast_->shown()});
  const bool best = is_best();
  save(std::make_shared<Saving>(
           Saving{info(), std::move(blocks), best, best ? std::optional(evaluation_->loss) : best_loss_}),
       0);
}

// A full disk or a lack of descriptors may pass: it is tried again before the run is given up. Meanwhile
// nodes compute, and commits wait.
void Coordinator::save(const std::shared_ptr<const Saving>& saving, unsigned failures) {
  const auto done = [this, saving, failures](const Recorder::Written& written) {
    if (!written.status.ok() && written.status.error().kind == ErrorKind::diverged)
      return fail(written.status.error());
    retrying_ = !written.status.ok() && failures + 1 < kCheckpointTries && !over();
    if (retrying_) {
      const Duration delay = options_.checkpoint_retry * (1U << failures);
      tally_.event(fmt::format("checkpoint of step {} failed: {}; trying again in {:.0f} s", written.step,
                               written.status.error().message, seconds_of(delay)));
      retry_timer_ = loop_.after(delay, [this, saving, failures] { save(saving, failures + 1); });
      return;
    }
    writing_ = false;
    checkpoint_due_ = loop_.now() + duration_of(options_.config.checkpoint_seconds);
    checkpointed_version_ = saving->info.version;
    if (!written.status.ok()) {
      constexpr auto kAdvice = "writing a checkpoint; free some space and start the run again";
      return fail(Error(written.status.error()).within(kAdvice));
    }
    best_loss_ = saving->best_loss;
    tally_.event(fmt::format("checkpoint of step {}", written.step));
    if (phase_ != Phase::training) return;
    if (!ending()) round_->hold(false);
    advance();
    pump();
  };
  recorder_.checkpoint(saving->info, saving->blocks, saving->best, options_.config.keep, done);
}

void Coordinator::stop(const std::string& reason) {
  if (over() || stopping_) return;
  log_.normal("{}: saving what is committed", reason);
  stopping_ = true;
  stop_asked_ = loop_.now();
  if (phase_ == Phase::waiting) return end(Status());
  round_->hold(true);
  // What is committed is saved at once: the nodes that evaluate may be gone already.
  if (evaluating_) leave_evaluation();
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
  if (round_ && phase_ == Phase::training) tally_.record_steps(progress());
  crew_at_end_ = crew();
  tally_.end();
  ended_ = loop_.now();
  phase_ = Phase::finishing;
  if (!on_finishing) return conclude(std::move(status));
  // After what it is doing: the summary is of all that.
  background_->run(on_finishing, [this, status = std::move(status)] { conclude(status); });
}

void Coordinator::conclude(Status status) {
  background_.reset();
  const std::string farewell = !status.ok() ? "the run failed: " + status.error().message
                               : stopping_  ? "the coordinator was stopped; the run can be resumed"
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
  return (sessions_.empty() && parting_.empty()) || (outcome_ && loop_.now() - ended_ >= kFarewellPatience);
}

std::size_t Coordinator::crew() const {
  if (over()) return crew_at_end_;
  return round_ && round_->has_crew() ? round_->crew_size() : 0;
}

std::uint64_t Coordinator::steps_done() const {
  return options_.config.mode == Mode::sync ? tally_.step() : learner_->version();
}

}  // namespace w5xde
