#include "coordinator/training.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "coordinator/codec_choice.h"

namespace w5xde {

namespace {

// Past max_staleness a contribution counts less, past this many times that it is refused.
constexpr std::uint64_t kRefusedStaleness = 4;

}  // namespace

Training::Training(Loop& loop, Host& host, const RunConfig& config, std::uint64_t inline_floats,
                   ThreadPool* pool)
    : loop_(loop),
      host_(host),
      config_(config),
      inline_floats_(inline_floats),
      pool_(pool),
      step_(pool),
      background_(loop.background()) {}

Status Training::resume(const CheckpointFile& from, std::uint64_t slots_per_epoch, bool shares_memory) {
  const CheckpointInfo& info = from.info();
  OptimizerOptions optimizer = config_.optimizer;
  if (CodecChoice::nodes_gather_momentum(config_)) optimizer.momentum = 0;
  W5XDE_TRY(const Schedule schedule, config_.schedule_over(config_.steps_total(slots_per_epoch)));
  W5XDE_TRY(learner_, Learner::from(from, {info.version, info.optimizer_steps, info.steps_without_gradient},
                                    {.optimizer = optimizer,
                                     .schedule = schedule,
                                     .clip_norm = config_.clip_norm,
                                     .shares_memory = shares_memory},
                                    pool_));
  // A run that grows and ends after a number of steps: nobody knows how many slots they will have.
  schedule_by_slots_ = !config_.growth.grows() || config_.slots_total(slots_per_epoch) > 0;
  return {};
}

Status Training::begin_steps(const CheckpointInfo& from, Round& round) {
  const BatchGrowthState before = from.batch_growth.value_or(BatchGrowthState());
  if (config_.growth.grows()) {
    step_.set_growth({.growth = config_.growth,
                      .batch = config_.batch,
                      .slots = config_.step_slots(),
                      .optimizer = config_.optimizer},
                     before);
    for (const BatchGrowth& growth : before.growths)
      round.grow(growth.step, step_.global_batch()->slots_of(growth));
  } else if (!before.growths.empty()) {
    return invalid(
        "this run's global batch has grown, and its steps would not fit any more; use --global-batch auto");
  }
  begin_step(round);
  return {};
}

void Training::begin_step(const Round& round) {
  step_.begin(round.slots_of(round.front_step()), learner_->floats(), learner_->parameters()->floats());
}

std::optional<BatchGrowth> Training::next_step(Round& round) {
  const auto growth = step_.committed(round.front_step() - 1);
  if (growth) round.grow(growth->step, step_.global_batch()->slots_of(*growth));
  begin_step(round);
  return growth;
}

// The schedule counts steps of the first size, `step_slots()` slots each: updates of an async run are smaller
// than that, steps that have grown are larger.
void Training::set_pace(const Round& round, std::uint64_t slots_committed) {
  const StepSlots& steps = round.step_slots();
  const std::uint64_t step = round.front_step();
  const std::uint64_t slot = config_.mode == Mode::async ? slots_committed : steps.first_slot_of(step);
  const GlobalBatch* growing = step_.global_batch();
  learner_->set_pace({.schedule_step = schedule_by_slots_ ? slot / config_.step_slots() : step,
                      .factor = growing ? growing->rate_factor(steps.full_slots_of(step)) : 1});
}

void Training::heavy(std::uint64_t floats, const std::function<void()>& work,
                     const std::function<void()>& then) {
  assert(!busy_);
  if (floats <= inline_floats_) {
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

// What had to wait while it was busy.
void Training::go_on() {
  while (!busy_ && !arrived_.empty() && host_.running()) {
    Arrived next = std::move(arrived_.front());
    arrived_.pop_front();
    check(std::move(next));
  }
  if (!busy_ && host_.running()) host_.idle();
}

void Training::check(Arrived arrived) {
  if (busy_) return arrived_.push_back(std::move(arrived));
  // What came in parts was looked at as it landed.
  const bool in_parts = arrived.contribution.first_float > 0;
  const std::uint64_t floats = in_parts ? 0 : learner_->floats();
  const auto look = [this, in_parts, floats](Arrived& at) {
    const std::span<const float> values(reinterpret_cast<const float*>(at.values->data()), floats);
    at.finite = (at.finite || !in_parts) && std::isfinite(at.contribution.loss_sum) &&
                all_finite_in_parallel(values, pool_);
  };
  if (floats <= inline_floats_) {
    look(arrived);
    return host_.checked(std::move(arrived));
  }
  const auto shared = std::make_shared<Arrived>(std::move(arrived));
  heavy(
      floats, [shared, look] { look(*shared); }, [this, shared] { host_.checked(std::move(*shared)); });
}

bool Training::land(NodeId node, const Contribution& contribution, std::span<float> values,
                    std::uint64_t landed, bool awaited) {
  if (contribution.first_float == 0) {
    if (!awaited) return false;
    step_.begin_landing(node,
                        {.block = contribution.block, .values = values, .samples = contribution.samples});
  }
  return step_.landed(node, landed);
}

void Training::add(const Contribution& contribution, Reduction::Buffer values) {
  if (config_.mode == Mode::async) return waiting_.push_back({contribution, std::move(values)});
  step_.answered(contribution.block);  // other nodes' copies of these slots are not needed
  const Sums sums{contribution.loss_sum, contribution.samples};
  const std::uint64_t floats = learner_->floats() - step_.taken();
  if (floats <= inline_floats_) {
    const Status added = step_.add(contribution.block, std::move(values), sums, learner_->spare());
    if (!added.ok()) host_.failed(added.error());
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
        if (!addition->status.ok()) host_.failed(addition->status.error());
      });
}

void Training::take_step(Broadcast& broadcast) {
  struct Commit {
    Reduction::Buffer sum;
    Sums sums;
    bool applied = false;
  };
  const auto commit = std::make_shared<Commit>();
  commit->sum = step_.take(commit->sums);
  heavy(
      learner_->floats() - learner_->stepped(),
      [this, commit, &broadcast] {
        commit->applied = learner_->apply(*commit->sum, commit->sums.samples, 1);
        if (commit->applied) broadcast.show(*learner_);
      },
      [this, commit] {
        learner_->give_back(std::move(commit->sum));
        if (!commit->applied) return host_.diverged_because("the sum of its gradients is not finite");
        host_.step_taken(commit->sums);
      });
}

bool Training::take_part(std::uint64_t part_floats) {
  if (busy_ || step_.landings() == 0) return false;
  Reduction::Part part = step_.next_part();
  if (part.empty()) return false;
  // Much may have landed while commits had to wait.
  const std::uint64_t last = part.first + std::max(part_floats, inline_floats_);
  if (last < part.last) {
    loop_.cancel(parts_timer_);
    parts_timer_ = loop_.after(Duration::zero(), [this] { host_.parts_due(); });
    part.last = last;
  }
  if (learner_->apply_part(step_.take_part(part), part.samples)) return true;
  host_.diverged_because("its gradient is not finite");
  return false;
}

bool Training::too_stale(const Contribution& contribution) const {
  return config_.mode == Mode::async && contribution.version <= learner_->version() &&
         learner_->version() - contribution.version > kRefusedStaleness * config_.max_staleness;
}

void Training::apply_oldest() {
  struct Update {
    Waiting of;
    bool applied = false;
  };
  const auto update = std::make_shared<Update>(Update{.of = std::move(waiting_.front())});
  waiting_.pop_front();
  const std::uint64_t version = update->of.contribution.version;
  const std::uint64_t staleness = learner_->version() - std::min(learner_->version(), version);
  const std::uint64_t max = config_.max_staleness;
  const double weight = staleness <= max ? 1 : static_cast<double>(max) / static_cast<double>(staleness);
  heavy(
      learner_->floats(),
      [this, update, weight] {
        update->applied = learner_->apply(*update->of.values, update->of.contribution.samples, weight);
      },
      [this, update] {
        learner_->give_back(std::move(update->of.values));
        if (!update->applied) return host_.diverged_because("its gradient is not finite");
        host_.applied(update->of.contribution);
      });
}

}  // namespace w5xde
