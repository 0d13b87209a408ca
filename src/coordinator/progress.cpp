// How a run goes on: contributions become versions, versions are evaluated and saved, and at some point it is
// over.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "coordinator/coordinator.h"

namespace w5xde {

namespace {

constexpr auto kRowEvery = std::chrono::milliseconds(100);

}  // namespace

// Everything that may have become possible, in order.
void Coordinator::advance() {
  if (phase_ != Phase::training) return;
  // The best version is saved at once: not while another checkpoint is written.
  if (evaluating_ && !writing_ && round_->evaluation_complete()) end_evaluation();
  if (options_.config.mode == Mode::sync) {
    while (phase_ == Phase::training && gate_open() && round_->front_complete() && may_step()) commit_step();
    if (phase_ == Phase::training) step_parts();
  } else {
    commit_async();
  }
  if (phase_ == Phase::training) try_finish();
}

void Coordinator::commit_step() {
  Sums sums;
  Reduction::Buffer sum = reduction_->take(sums);
  const std::uint32_t slots = round_->slots_of(round_->front_step());
  const bool applied = learner_->apply(*sum, sums.samples, 1);
  learner_->give_back(std::move(sum));
  if (!applied) return diverged("the gradient's norm is not finite");
  landings_.clear();
  broadcast_->show(*learner_);
  round_->commit(loop_.now());
  grow();
  begin_reduction();
  bad_answers_.clear();
  counted_.step = round_->front_step();
  const auto send_all = [this] {
    if (stopping_) return;
    for (auto& [id, session] : sessions_) send_newest(*session);
  };
  // What a checkpoint asks of the nodes comes before what makes them go on.
  const bool due = loop_.now() >= checkpoint_due_;
  if (!due) send_all();
  committed(sums.loss / static_cast<double>(sums.samples), sums.samples, slots);
  if (!due) return;
  write_checkpoint();
  if (phase_ == Phase::training) send_all();
}

void Coordinator::commit_async() {
  while (gate_open() && !waiting_.empty() && phase_ == Phase::training) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const Contribution& contribution = next.contribution;
    const std::uint64_t staleness = learner_->version() - std::min(learner_->version(), contribution.version);
    const std::uint64_t max = options_.config.max_staleness;
    const double weight = staleness <= max ? 1 : static_cast<double>(max) / static_cast<double>(staleness);
    const bool applied = learner_->apply(*next.values, contribution.samples, weight);
    learner_->give_back(std::move(next.values));
    if (!applied)
      return fail(invalid("training diverged: the gradient's norm is not finite. Lower --learning-rate"));
    committed(contribution.loss_sum / static_cast<double>(contribution.samples), contribution.samples,
              contribution.block.slot_count);
  }
  if (!gate_open() || !waiting_.empty() || !round_->drained() || phase_ != Phase::training) return;
  counted_.step = round_->front_step();
  if (loop_.now() >= checkpoint_due_ && !stopping_) write_checkpoint();
}

void Coordinator::committed(double loss, std::uint64_t samples, std::uint32_t slots) {
  if (counted_.slots_committed == 0) counted_.loss_first = loss;
  counted_.loss_last = loss;
  counted_.loss_total += loss;
  counted_.samples_committed += samples;
  counted_.slots_committed += slots;
  counted_.evaluation_loss.reset();
  counted_.evaluation_accuracy.reset();
  batches_here_ += slots;
  row_loss_ += loss;
  ++row_.steps;
  row_.samples += samples;
  row_batches_ += slots;
  if (loop_.now() - row_since_ >= kRowEvery) record_step();
  const std::uint64_t every = options_.config.evaluate_every;
  if (every > 0 && learner_->version() % every == 0 && evaluation_batches_ && !run_over() && !stopping_)
    begin_evaluation();
}

// A row covers the steps since the last one: a thousand steps a second do not make a thousand rows.
void Coordinator::record_step() {
  if (row_batches_ == 0) return;
  const double elapsed = seconds_of(loop_.now() - row_since_);
  const double rate = static_cast<double>(row_batches_) / std::max(elapsed, 1e-9);
  batches_per_second_ = batches_per_second_ == 0 ? rate : 0.8 * batches_per_second_ + 0.2 * rate;
  row_.step = steps_done();
  row_.loss = row_loss_ / static_cast<double>(row_.steps);
  row_.learning_rate = learner_->learning_rate();
  row_.batches_per_second = rate;
  row_.nodes = static_cast<unsigned>(round_->nodes());
  row_.seconds = seconds();
  recorder_.add(row_);
  row_ = {.steps = 0};
  row_loss_ = 0;
  row_batches_ = 0;
  row_since_ = loop_.now();
}

void Coordinator::begin_evaluation() {
  evaluating_ = true;
  evaluations_.clear();
  round_->begin_evaluation(static_cast<std::uint32_t>(evaluation_batches_->sampler().slots_per_epoch()),
                           loop_.now());
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
  evaluating_ = false;
  round_->end_evaluation();
  evaluated_version_ = learner_->version();
  evaluation_ = {.loss = sums.loss / samples,
                 .accuracy = material_->evaluation->classes() > 0 ? correct / samples : kUnknown};
  counted_.evaluation_loss = evaluation_->loss;
  if (!std::isnan(evaluation_->accuracy)) counted_.evaluation_accuracy = evaluation_->accuracy;
  recorder_.add(RunDatabase::EvaluationRow{.step = steps_done(),
                                           .loss = evaluation_->loss,
                                           .accuracy = evaluation_->accuracy,
                                           .samples = static_cast<std::uint64_t>(samples)});
  event(fmt::format("evaluation at step {}: loss {:.4f}, accuracy {:.4f}", steps_done(), evaluation_->loss,
                    evaluation_->accuracy));
  if (options_.config.target_accuracy > 0 && evaluation_->accuracy >= options_.config.target_accuracy &&
      !out_of_time_) {
    event(fmt::format("the target of {} is reached", options_.config.target_accuracy));
    out_of_time_ = true;
    round_->hold(true);
  }
  if (!best_loss_ || evaluation_->loss < *best_loss_) {
    best_loss_ = evaluation_->loss;
    // What lossy codecs hold back is as much as the model, from every node: not for every evaluation.
    const bool dear =
        std::ranges::any_of(sessions_, [](const auto& member) { return member.second->has_feedback(); });
    const bool due = !dear || loop_.now() >= checkpoint_due_;
    if (options_.config.mode == Mode::sync && !run_over() && due) write_checkpoint();
  }
}

bool Coordinator::run_over() const {
  return round_->finished() || ((out_of_time_ || stopping_) && round_->drained());
}

void Coordinator::try_finish() {
  const bool stop_now = stopping_ && options_.config.mode == Mode::sync && !learner_->next();
  if (!gate_open() || !waiting_.empty() || !(stop_now || run_over())) return;
  if (!stopping_ && evaluation_batches_ && evaluated_version_ != learner_->version()) {
    // The last word is on the parameters as they are.
    if (!broadcast_->shown().empty()) {
      broadcast_->refresh();
      for (auto& [id, session] : sessions_) session->forget_version();
    }
    gather_feedback();  // for the checkpoint after it: it comes up while the parameters go down
    return begin_evaluation();
  }
  if (checkpointed_version_ != learner_->version()) return write_checkpoint();
  end(Status());
}

CheckpointInfo Coordinator::info() const {
  CheckpointInfo info = counted_;
  info.version = learner_->version();
  info.next_slot = counted_.slots_committed;
  info.seed = options_.config.seed;
  info.optimizer_steps = learner_->optimizer_steps();
  info.slots_leased_again += round_->slots_leased_again();
  info.duplicates_dropped += round_->duplicates_dropped();
  info.seconds = seconds();
  info.model = options_.config.model;
  if (!engine_.empty()) info.engine = engine_;
  if (!processor_.empty()) info.processor = processor_;
  info.model_fingerprint = learner_->model_fingerprint();
  if (global_batch_) info.batch_growth = global_batch_->state();
  return info;
}

void Coordinator::write_checkpoint() {
  const auto blocks = learner_->blocks();
  // The last checkpoint is what a run that diverged goes on from: it must not be of what it diverged to.
  if (!std::ranges::all_of(blocks, all_finite, &CheckpointBlock::values)) {
    return fail(invalid(
        fmt::format("training diverged by step {}: parameters are not finite. Lower --learning-rate or "
                    "set --clip-norm, and go on from the last checkpoint",
                    steps_done())));
  }
  assert(!writing_ && !learner_->next());
  writing_ = true;
  round_->disturbed();
  broadcast_->show(*learner_);  // what nodes are shown must not change while it is written
  gather_feedback();
  if (!feedback_->gathering()) write_gathered();
}

void Coordinator::write_gathered() {
  auto blocks = learner_->blocks();
  for (const CheckpointBlock& block : feedback_->blocks()) blocks.push_back(block);
  if (!broadcast_->shown().empty()) blocks.push_back({"shown", shape_.parameters.get(), broadcast_->shown()});
  const std::uint64_t version = learner_->version();
  const bool best = evaluated_version_ == version && best_loss_ == evaluation_->loss;
  const auto done = [this, version, alive = std::weak_ptr(alive_)](const Recorder::Written& written) {
    if (alive.expired()) return;
    writing_ = false;
    checkpoint_due_ = loop_.now() + duration_of(options_.config.checkpoint_seconds);
    checkpointed_version_ = version;
    if (!written.status.ok()) {
      constexpr auto kAdvice = "writing a checkpoint; free some space and start the run again";
      return fail(Error(written.status.error()).within(kAdvice));
    }
    event(fmt::format("checkpoint of step {}", written.step));
    if (phase_ != Phase::training) return;
    if (!out_of_time_ && !stopping_) round_->hold(false);
    advance();
    pump();
  };
  recorder_.checkpoint(info(), std::move(blocks), best, options_.config.keep, done);
}

void Coordinator::stop(const std::string& reason) {
  if (phase_ == Phase::ended || stopping_) return;
  log_.normal("{}: saving what is committed", reason);
  stopping_ = true;
  stop_asked_ = loop_.now();
  if (phase_ == Phase::waiting) return end(Status());
  round_->hold(true);
  advance();
}

void Coordinator::diverged(std::string_view how) {
  fail(invalid(
      fmt::format("training diverged at step {}: {}. Lower --learning-rate or set --clip-norm, and go on "
                  "from the last checkpoint",
                  round_->front_step(), how)));
}

void Coordinator::fail(Error error) {
  if (phase_ == Phase::ended) return;
  event(error.message);
  end(std::move(error));
}

void Coordinator::end(Status status) {
  if (round_ && phase_ == Phase::training) record_step();
  crew_at_end_ = crew();
  ended_ = loop_.now();
  if (on_finishing) on_finishing();
  recorder_.flush();
  phase_ = Phase::ended;
  const std::string farewell = !status.ok() ? "the run failed: " + status.error().message
                               : stopping_  ? "the coordinator was stopped; the run can be resumed"
                                            : "the run is finished";
  for (auto& [id, session] : sessions_) session->close(disconnected(farewell));
  listener_.reset();
  outcome_ = std::move(status);
}

std::size_t Coordinator::crew() const {
  if (phase_ == Phase::ended) return crew_at_end_;
  return round_ && round_->has_crew() ? round_->crew_size() : 0;
}

void Coordinator::event(const std::string& text) {
  log_.normal("{}", text);
  recorder_.add(RunDatabase::EventRow{seconds(), text});
}

double Coordinator::seconds() const {
  if (begun_ == Instant()) return seconds_before_;
  return seconds_before_ + seconds_of((phase_ == Phase::ended ? ended_ : loop_.now()) - begun_);
}

std::uint64_t Coordinator::steps_done() const {
  return options_.config.mode == Mode::sync ? counted_.step : learner_->version();
}

}  // namespace w5xde
