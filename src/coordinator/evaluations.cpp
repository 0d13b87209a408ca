#include "coordinator/evaluations.h"

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
  double counted = 0, correct = 0;
  for (const auto& [slot, part] : parts_) {
    const Sums part_sums{part.loss_sum, part.samples};
    (void)tree.add(part.block, std::make_unique<AlignedBuffer>(), part_sums, nullptr, none);
    counted += static_cast<double>(part.counted);
    correct += static_cast<double>(part.correct);
  }
  Sums sums;
  (void)tree.take(sums);
  const auto samples = static_cast<double>(sums.samples);
  stats_ = {.loss = sums.loss / samples, .accuracy = options_.classifies ? correct / counted : kUnknown};
  if (options_.sequences) stats_.perplexity = std::exp(stats_.loss);
  of_ = of;
  const Kind kind = kind_;
  leave();
  return {stats_, sums.samples, judge(kind, of.out_of_time)};
}

// An evaluation on the way may be of what nodes were shown, and steps are under way behind it. So it only
// stops new steps; when the open ones are committed, an evaluation of the parameters as they are decides.
Evaluations::Target Evaluations::judge(Kind kind, bool out_of_time) {
  if (options_.target_accuracy <= 0) return Target::open;
  const bool reached = stats_.accuracy >= options_.target_accuracy;
  const bool deciding = kind == Kind::deciding;
  if (!target_in_sight_) {
    target_in_sight_ = reached && !deciding && !out_of_time;
    return target_in_sight_ ? Target::in_sight : Target::open;
  }
  if (!deciding) return Target::open;
  target_in_sight_ = reached;
  return reached ? Target::reached : Target::missed;
}

// A loss that is not a number is never the best.
std::optional<double> Evaluations::better_loss(std::uint64_t version) const {
  if (!is_of(version) || !std::isfinite(stats_.loss)) return std::nullopt;
  const auto& best = options_.best_loss;
  const bool better = !best || !std::isfinite(*best) || stats_.loss < *best;
  return better ? std::optional(stats_.loss) : std::nullopt;
}

}  // namespace w5xde
