#include "coordinator/evaluations.h"

#include <gtest/gtest.h>

#include <cmath>

namespace w5xde {
namespace {

using Kind = Evaluations::Kind;
using Course = Evaluations::Course;

// One evaluation of two slots of ten samples each.
Evaluations::Outcome evaluate(Evaluations& evaluations, Kind kind, const Evaluations::Evaluated& of,
                              double loss, std::uint64_t correct) {
  evaluations.begin(kind);
  for (const std::uint32_t slot : {1U, 0U}) {
    Contribution part;
    part.block = {slot, 1};
    part.loss_sum = loss * 10;
    part.samples = 10;
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
  EXPECT_EQ(outcome.course, Course::unchanged);
  EXPECT_EQ(outcome.news, "");
  EXPECT_FALSE(evaluations.in_progress());
  EXPECT_TRUE(evaluations.is_exactly_of(3));
  EXPECT_FALSE(evaluations.is_of(4));
}

TEST(Evaluations, a_target_in_sight_is_reached_or_missed_by_the_evaluation_that_decides) {
  Evaluations evaluations({.slots = 2, .classifies = true, .target_accuracy = 0.75});
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, {.version = 1}, 1, 10).course, Course::unchanged);
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, {.version = 2, .exact = false}, 1, 16).course,
            Course::ends_soon);
  EXPECT_EQ(evaluate(evaluations, Kind::deciding, {.version = 3}, 1, 14).course, Course::goes_on);
  EXPECT_EQ(evaluations.ending(), "");
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, {.version = 4}, 1, 16).course, Course::ends_soon);
  const auto outcome = evaluate(evaluations, Kind::deciding, {.version = 5}, 1, 16);
  EXPECT_EQ(outcome.course, Course::unchanged);
  EXPECT_EQ(outcome.news, "the target accuracy is reached: 0.8000");
  EXPECT_EQ(evaluations.ending(), outcome.news);
}

TEST(Evaluations, a_target_is_reached_at_once_by_a_version_that_can_be_the_last) {
  Evaluations evaluations({.slots = 2, .target_loss = 0.5});
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, {.version = 1, .can_be_last = true}, 0.6, 0).course,
            Course::unchanged);
  const auto outcome = evaluate(evaluations, Kind::on_the_way, {.version = 2, .can_be_last = true}, 0.5, 0);
  EXPECT_EQ(outcome.course, Course::ends_here);
  EXPECT_EQ(outcome.news, "the target loss is reached: 0.5000");
}

TEST(Evaluations, a_run_that_is_out_of_time_has_no_target_in_sight) {
  Evaluations evaluations({.slots = 2, .classifies = true, .target_accuracy = 0.75, .patience = 1});
  const Evaluations::Evaluated at_the_end{.version = 1, .out_of_time = true};
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, at_the_end, 1, 20).course, Course::unchanged);
}

TEST(Evaluations, patience_is_over_when_enough_evaluations_in_a_row_brought_no_lower_loss) {
  Evaluations evaluations({.slots = 2, .patience = 2});
  const auto course = [&](std::uint64_t version, double loss) {
    return evaluate(evaluations, Kind::on_the_way, {.version = version, .can_be_last = true}, loss, 0).course;
  };
  EXPECT_EQ(course(10, 0.5), Course::unchanged);
  EXPECT_EQ(course(20, 0.5), Course::unchanged) << "no lower";
  EXPECT_EQ(course(30, 0.4), Course::unchanged) << "lower: counted anew";
  EXPECT_EQ(course(40, std::nan("")), Course::unchanged);
  EXPECT_EQ(course(50, 0.41), Course::ends_here);
  EXPECT_EQ(evaluations.ending(), "2 evaluations in a row brought no lower loss than 0.4000");
}

TEST(Evaluations, patience_counts_each_version_once_and_no_other_than_those_that_come_every_few_steps) {
  Evaluations evaluations({.slots = 2, .patience = 2});
  (void)evaluate(evaluations, Kind::on_the_way, {.version = 10}, 0.5, 0);
  (void)evaluate(evaluations, Kind::on_the_way, {.version = 20}, 0.6, 0);
  (void)evaluate(evaluations, Kind::deciding, {.version = 20}, 0.6, 0);
  (void)evaluate(evaluations, Kind::deciding, {.version = 25, .counts = false}, 0.6, 0);
  EXPECT_EQ(evaluations.ending(), "");
  EXPECT_EQ(evaluate(evaluations, Kind::on_the_way, {.version = 30}, 0.6, 0).course, Course::ends_soon);
}

TEST(Evaluations, patience_goes_on_where_a_checkpoint_has_it) {
  Evaluations before({.slots = 2});
  (void)evaluate(before, Kind::on_the_way, {.version = 10}, 0.5, 0);
  (void)evaluate(before, Kind::on_the_way, {.version = 20}, 0.7, 0);
  CheckpointInfo info;
  before.add_to(info);
  EXPECT_EQ(info.lowest_loss, 0.5);
  EXPECT_EQ(info.evaluations_since_lowest, 1U);
  Evaluations after({.slots = 2,
                     .patience = 2,
                     .counted_version = 20,
                     .lowest_loss = info.lowest_loss,
                     .since_lowest = info.evaluations_since_lowest});
  EXPECT_TRUE(after.has_counted(20));
  EXPECT_EQ(evaluate(after, Kind::on_the_way, {.version = 30}, 0.6, 0).course, Course::ends_soon);
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
