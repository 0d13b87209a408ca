#include "coordinator/evaluations.h"

#include <gtest/gtest.h>

#include <cmath>

namespace w5xde {
namespace {

using Kind = Evaluations::Kind;
using Target = Evaluations::Target;

// One evaluation of two slots of ten samples each.
Evaluations::Outcome evaluate(Evaluations& evaluations, Kind kind, const Evaluations::Evaluated& of,
                              double loss, std::uint64_t correct) {
  evaluations.begin(kind);
  for (const std::uint32_t slot : {1U, 0U}) {
    Contribution part;
    part.block = {slot, 1};
    part.loss_sum = loss * 10;
    part.samples = 10;
    part.counted = 10;
    part.correct = correct / 2;
    evaluations.add(part);
  }
  return evaluations.finish(of);
}

TEST(Evaluations, its_loss_and_accuracy_are_means_over_all_samples) {
  Evaluations evaluations({.slots = 2, .classifies = true});
  const auto outcome = evaluate(evaluations, Kind::on_the_way, {.version = 3}, 0.5, 16);
  EXPECT_DOUBLE_EQ(outcome.stats.loss, 0.5);
  EXPECT_DOUBLE_EQ(outcome.stats.accuracy, 0.8);
  EXPECT_EQ(outcome.samples, 20U);
  EXPECT_EQ(outcome.target, Target::open);
  EXPECT_FALSE(evaluations.in_progress());
  EXPECT_TRUE(evaluations.is_exactly_of(3));
  EXPECT_FALSE(evaluations.is_of(4));
}

TEST(Evaluations, accuracy_is_the_share_of_targets_that_count_and_perplexity_follows_from_the_loss) {
  Evaluations evaluations({.slots = 1, .classifies = true, .sequences = true});
  evaluations.begin(Kind::on_the_way);
  evaluations.add({.block = {0, 1}, .samples = 10, .loss_sum = 20, .counted = 640, .correct = 160});
  const auto stats = evaluations.finish({.version = 1}).stats;
  EXPECT_DOUBLE_EQ(stats.accuracy, 0.25);
  EXPECT_DOUBLE_EQ(stats.perplexity, std::exp(2.0));
}

TEST(Evaluations, a_target_in_sight_is_reached_or_missed_by_the_evaluation_that_decides) {
  Evaluations evaluations({.slots = 2, .classifies = true, .target_accuracy = 0.75});
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, {.version = 1}, 1, 10).target, Target::open);
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, {.version = 2, .exact = false}, 1, 16).target,
            Target::in_sight);
  EXPECT_EQ(evaluate(evaluations, Kind::deciding, {.version = 3}, 1, 14).target, Target::missed);
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, {.version = 4}, 1, 16).target, Target::in_sight);
  EXPECT_EQ(evaluate(evaluations, Kind::deciding, {.version = 5}, 1, 16).target, Target::reached);
}

TEST(Evaluations, a_run_that_is_out_of_time_has_no_target_in_sight) {
  Evaluations evaluations({.slots = 2, .classifies = true, .target_accuracy = 0.75});
  const Evaluations::Evaluated at_the_end{.version = 1, .out_of_time = true};
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, at_the_end, 1, 20).target, Target::open);
}

TEST(Evaluations, only_a_lower_loss_than_the_best_that_is_saved_is_better) {
  Evaluations evaluations({.slots = 2, .best_loss = 0.4});
  (void)evaluate(evaluations, Kind::on_the_way, {.version = 1}, 0.5, 0);
  EXPECT_FALSE(evaluations.better_loss(1));
  (void)evaluate(evaluations, Kind::on_the_way, {.version = 2}, 0.25, 0);
  EXPECT_EQ(evaluations.better_loss(2), 0.25);
  EXPECT_FALSE(evaluations.better_loss(1));  // the parameters are others by now
  evaluations.set_best_loss(0.25);
  EXPECT_FALSE(evaluations.better_loss(2));
}

TEST(Evaluations, one_that_is_left_says_nothing) {
  Evaluations evaluations({.slots = 2});
  evaluations.begin(Kind::deciding);
  evaluations.leave();
  EXPECT_FALSE(evaluations.in_progress());
  EXPECT_FALSE(evaluations.is_of(0));
}

}  // namespace
}  // namespace w5xde
