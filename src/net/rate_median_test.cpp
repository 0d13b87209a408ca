#include "net/rate_median.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

constexpr bool kTheLinkS = false, kTheSenderS = true;

RateMedian after(std::initializer_list<double> rates, bool whose = kTheLinkS) {
  RateMedian median;
  for (const double rate : rates) median.add(rate, whose);
  return median;
}

TEST(RateMedianTest, nothing_is_known_of_a_link_that_carried_nothing) {
  EXPECT_EQ(RateMedian().bytes_per_second(), 0);
  EXPECT_EQ(after({0, 0}).bytes_per_second(), 0);
}

TEST(RateMedianTest, the_first_estimate_is_better_than_none) {
  EXPECT_EQ(after({70}).bytes_per_second(), 70);
}

TEST(RateMedianTest, the_middle_of_the_last_five_counts) {
  EXPECT_EQ(after({10, 30, 20}).bytes_per_second(), 20);
  EXPECT_EQ(after({50, 10, 40, 20, 30}).bytes_per_second(), 30);
  EXPECT_EQ(after({1, 2, 3, 50, 10, 40, 20, 30}).bytes_per_second(), 30) << "the first three are forgotten";
}

TEST(RateMedianTest, one_estimate_that_is_far_off_changes_little) {
  EXPECT_EQ(after({100, 101, 102, 103, 104, 0.001}).bytes_per_second(), 102);
  EXPECT_EQ(after({100, 101, 102, 103, 104, 1e12}).bytes_per_second(), 103);
  EXPECT_EQ(after({100, 0.001}).bytes_per_second(), 100) << "nor is the second believed against the first";
  EXPECT_EQ(after({0.001, 100, 101}).bytes_per_second(), 100) << "a wrong first one is outvoted soon";
}

TEST(RateMedianTest, a_link_that_changed_is_believed_with_the_third_estimate) {
  RateMedian median = after({100, 101, 102, 103, 104});
  median.add(10, kTheLinkS);
  median.add(11, kTheLinkS);
  EXPECT_GE(median.bytes_per_second(), 100);
  median.add(12, kTheLinkS);
  EXPECT_EQ(median.bytes_per_second(), 12);
}

TEST(RateMedianTest, an_estimate_that_is_read_twice_counts_once) {
  EXPECT_EQ(after({100, 101, 102, 5, 5, 5, 5, 5}).bytes_per_second(), 101);
}

TEST(RateMedianTest, a_sender_with_little_to_send_says_nothing_about_a_faster_link) {
  RateMedian median = after({100, 101, 102});
  for (const double rate : {1.0, 2.0, 3.0, 4.0, 5.0}) median.add(rate, kTheSenderS);
  EXPECT_EQ(median.bytes_per_second(), 101);
}

TEST(RateMedianTest, the_most_that_a_sender_got_through_is_known_to_fit) {
  EXPECT_EQ(after({5, 9, 7, 2}, kTheSenderS).bytes_per_second(), 9);
}

TEST(RateMedianTest, what_the_link_carries_replaces_what_was_only_known_to_fit) {
  RateMedian median = after({5, 9, 7}, kTheSenderS);
  median.add(1000, kTheLinkS);
  EXPECT_EQ(median.bytes_per_second(), 1000);
}

TEST(RateMedianTest, the_rate_is_the_link_s_when_most_estimates_are) {
  RateMedian median = after({5, 9}, kTheSenderS);
  EXPECT_FALSE(median.limited_by_link());
  median.add(100, kTheLinkS);
  median.add(101, kTheLinkS);
  EXPECT_FALSE(median.limited_by_link()) << "two may both be wrong";
  median.add(102, kTheLinkS);
  EXPECT_TRUE(median.limited_by_link());
}

}  // namespace
}  // namespace w5xde
