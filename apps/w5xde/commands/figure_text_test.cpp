#include "commands/figure_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace w5xde {
namespace {

TEST(FigureTextTest, figures_are_told_as_people_read_them) {
  EXPECT_EQ(count_text(17244.4), "17,244");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1e6), "1,000,000");
  EXPECT_EQ(count_text(-1234), "-1,234");
  EXPECT_EQ(count_text(-0.2), "0");
  EXPECT_EQ(decimal_text(1.344), "1.34");
  EXPECT_EQ(decimal_text(2, 0), "2");
  EXPECT_EQ(percent_text(0.423), "42 %");
  EXPECT_EQ(percent_text(0.0475, 1), "4.8 %");
  EXPECT_EQ(size_text(326e3), "326 KB");
  EXPECT_EQ(size_text(2.9e6), "2.9 MB");
  EXPECT_EQ(size_text(999'600), "1.0 MB");
  EXPECT_EQ(size_text(12), "12 B");
  EXPECT_EQ(rate_text(1.67e6), "1.7 MB/s");
  EXPECT_EQ(clock_text(67), "1:07");
  EXPECT_EQ(clock_text(3667), "1:01:07");
  EXPECT_EQ(clock_text(-3), "0:00");
  EXPECT_EQ(span_text(12.4), "12 s");
  EXPECT_EQ(span_text(300), "5 min");
  EXPECT_EQ(span_text(10'800), "3 h");
  EXPECT_EQ(span_text(432'000), "5 days");
}

TEST(FigureTextTest, what_is_no_number_is_a_dash) {
  for (const double none : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                            -std::numeric_limits<double>::infinity(), 1e300}) {
    EXPECT_EQ(count_text(none), "–");
    EXPECT_EQ(decimal_text(none), "–");
    EXPECT_EQ(percent_text(none), "–");
    EXPECT_EQ(size_text(none), "–");
    EXPECT_EQ(rate_text(none), "–");
    EXPECT_EQ(clock_text(none), "–");
    EXPECT_EQ(span_text(none), "–");
  }
}

}  // namespace
}  // namespace w5xde
