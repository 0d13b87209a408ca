#include "coordinator/evaluations.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "learn/reduction.h"

namespace w5xde {

void Evaluations::begin(Kind kind) {
  kind_ = kind;
  parts_.clear();
}

void Evaluations::leave() {
  kind_ = Kind::none;
  parts_.clear();
}

Evaluations::Outcome Evaluations::finish(const Evaluated& of) {
  // Along the tree: how the slots were cut into leases must not show.
  Reduction tree(options_.slots, 0);
  std::vector<Reduction::Buffer> none;
  double correct = 0;
  for (const auto& [slot, part] : parts_) {
    const Sums part_sums{part.loss_sum, part.samples};
    (void)tree.add(part.block, std::make_unique<AlignedBuffer>(), part_sums, nullptr, none);
    correct += static_cast<double>(part.correct);
  }
  Sums sums;
  (void)tree.take(sums);
  const auto samples = static_cast<double>(sums.samples);
  stats_ = {.loss = sums.loss / samples, .accuracy = options_.classifies ? correct / samples : kUnknown};
  of_ = of;
  const Kind kind = kind_;
  leave();
  Outcome outcome{.stats = stats_, .samples = sums.samples, .course = Course::unchanged, .news = {}};
  outcome.course = judge(kind, of, outcome.news);
  const bool out_of_patience = count(of) && kind == Kind::on_the_way && !of.out_of_time;
  if (out_of_patience && outcome.course == Course::unchanged && ending_.empty()) {
    outcome.news = ending_ = fmt::format("{} evaluations in a row brought no lower loss than {:.4f}",
                                         options_.since_lowest, options_.lowest_loss.value_or(kUnknown));
    outcome.course = of.can_be_last ? Course::ends_here : Course::ends_soon;
  }
  return outcome;
}

// The target that is reached, in words; empty while none is.
std::string Evaluations::target_reached() const {
  if (options_.target_accuracy > 0 && stats_.accuracy >= options_.target_accuracy)
    return fmt::format("the target accuracy is reached: {:.4f}", stats_.accuracy);
  if (options_.target_loss != 0 && stats_.loss <= options_.target_loss)
    return fmt::format("the target loss is reached: {:.4f}", stats_.loss);
  return {};
}

// Where the run cannot end with the version that was evaluated, steps are under way behind it, or it is what
// nodes were shown of it. Then no new step is begun; when the open ones are committed, an evaluation of the
// parameters as they are decides.
Evaluations::Course Evaluations::judge(Kind kind, const Evaluated& of, std::string& news) {
  const std::string reached = target_reached();
  const bool deciding = kind == Kind::deciding;
  if (!target_in_sight_) {
    if (reached.empty() || deciding || of.out_of_time) return Course::unchanged;
    target_in_sight_ = !of.can_be_last;
    if (target_in_sight_) return Course::ends_soon;
    news = ending_ = reached;
    return Course::ends_here;
  }
  if (!deciding) return Course::unchanged;
  target_in_sight_ = !reached.empty();
  news = target_in_sight_ ? reached : "the parameters themselves do not reach the target: training goes on";
  if (target_in_sight_) ending_ = reached;
  return target_in_sight_ ? Course::unchanged : Course::goes_on;
}

// Each version once: it may be evaluated again at the end. True: patience is over.
bool Evaluations::count(const Evaluated& of) {
  if (!of.counts || has_counted(of.version)) return false;
  options_.counted_version = of.version;
  const bool lower =
      std::isfinite(stats_.loss) && (!options_.lowest_loss || stats_.loss < *options_.lowest_loss);
  if (lower) options_.lowest_loss = stats_.loss;
  options_.since_lowest = lower ? 0 : options_.since_lowest + 1;
  return options_.patience > 0 && options_.since_lowest >= options_.patience;
}

void Evaluations::add_to(CheckpointInfo& info) const {
  info.lowest_loss = options_.lowest_loss;
  info.evaluations_since_lowest = options_.since_lowest;
}

// A loss that is not a number is never the best.
std::optional<double> Evaluations::better_loss(std::uint64_t version) const {
  if (!is_of(version) || !std::isfinite(stats_.loss)) return std::nullopt;
  const auto& best = options_.best_loss;
  const bool better = !best || !std::isfinite(*best) || stats_.loss < *best;
  return better ? std::optional(stats_.loss) : std::nullopt;
}

}  // namespace w5xde
