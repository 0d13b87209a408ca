#include "w5xde/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace w5xde {
namespace {

Result<int> half_of(int number) {
  if (number % 2 != 0) return invalid(std::to_string(number) + " is odd");
  return number / 2;
}

Status must_be_positive(int number) {
  if (number <= 0) return overloaded("not positive");
  return {};
}

Result<int> quarter_of(int number) {
  W5XDE_TRY(const int half, half_of(number));
  W5XDE_TRY(const int quarter, half_of(half));
  return quarter;
}

Status check_both(int first, int second, int& checked) {
  W5XDE_CHECK(must_be_positive(first));
  ++checked;
  W5XDE_CHECK(must_be_positive(second));
  ++checked;
  return {};
}

Result<std::string> tell_checked(int number) {
  // As the only statement of an if with an else: the macro must be one statement.
  if (number != 0)
    W5XDE_CHECK(must_be_positive(number));
  else
    return std::string("zero");
  return std::string("positive");
}

Result<std::unique_ptr<int>> owned(int number) {
  if (number < 0) return disconnected("gone");
  return std::make_unique<int>(number);
}

Result<int> sum_of_owned(int number) {
  W5XDE_TRY(std::unique_ptr<int> first, owned(number));
  W5XDE_TRY(const auto second, owned(number + 1));
  return *first + *second;
}

TEST(Result, holds_a_value) {
  Result<int> result = half_of(8);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(result.value(), 4);
  *result = 5;
  const Result<int> fixed = result;
  EXPECT_EQ(*fixed, 5);
  EXPECT_EQ(fixed.value(), 5);
}

TEST(Result, holds_an_error) {
  const Result<int> result = half_of(7);
  ASSERT_FALSE(result.ok());
  EXPECT_FALSE(static_cast<bool>(result));
  EXPECT_EQ(result.error().kind, ErrorKind::invalid);
  EXPECT_EQ(result.error().message, "7 is odd");
}

TEST(Result, gives_its_value_s_members) {
  Result<std::vector<int>> result(std::vector{1, 2});
  result->push_back(3);
  const auto& fixed = result;
  EXPECT_EQ(fixed->size(), 3u);
}

TEST(Result, moves_values_that_cannot_be_copied) {
  std::unique_ptr<int> number = owned(3).value();
  EXPECT_EQ(*number, 3);
  auto result = owned(4);
  number = *std::move(result);
  EXPECT_EQ(*number, 4);
  EXPECT_EQ(owned(-1).error().kind, ErrorKind::disconnected);
}

TEST(Try, declares_the_value_or_returns_the_first_error) {
  EXPECT_EQ(quarter_of(12).value(), 3);
  EXPECT_EQ(quarter_of(7).error().message, "7 is odd");
  EXPECT_EQ(quarter_of(6).error().message, "3 is odd");
}

TEST(Try, moves_values_that_cannot_be_copied) {
  EXPECT_EQ(sum_of_owned(1).value(), 3);
  EXPECT_EQ(sum_of_owned(-2).error().message, "gone");
  EXPECT_EQ(sum_of_owned(-1).error().message, "gone");
}

TEST(Check, goes_on_or_returns_the_error) {
  int checked = 0;
  EXPECT_TRUE(check_both(1, 2, checked).ok());
  EXPECT_EQ(checked, 2);
  EXPECT_EQ(check_both(1, 0, checked).error().kind, ErrorKind::overloaded);
  EXPECT_EQ(checked, 3);
  EXPECT_FALSE(check_both(0, 1, checked).ok());
  EXPECT_EQ(checked, 3);
}

TEST(Check, is_one_statement) {
  EXPECT_EQ(tell_checked(0).value(), "zero");
  EXPECT_EQ(tell_checked(1).value(), "positive");
  EXPECT_EQ(tell_checked(-1).error().message, "not positive");
}

TEST(Status, is_success_unless_it_has_an_error) {
  const Status fine;
  EXPECT_TRUE(fine.ok());
  EXPECT_TRUE(static_cast<bool>(fine));
  Status bad = corrupt("checksum");
  EXPECT_FALSE(bad.ok());
  const Error taken = std::move(bad).error();
  EXPECT_EQ(taken.message, "checksum");
}

TEST(Error, says_its_kind_and_its_message) {
  EXPECT_EQ(invalid("a").to_string(), "invalid: a");
  EXPECT_EQ(corrupt("b").to_string(), "corrupt: b");
  EXPECT_EQ(incompatible("c").to_string(), "incompatible: c");
  EXPECT_EQ(disconnected("d").to_string(), "disconnected: d");
  EXPECT_EQ(overloaded("e").to_string(), "overloaded: e");
  EXPECT_EQ((Error{ErrorKind::system, "f"}).to_string(), "system: f");
  EXPECT_EQ(diverged("g").to_string(), "diverged: g");
}

TEST(Error, told_from_further_out_keeps_its_kind) {
  const Error error = corrupt("no such key").within("line 3").within("run.toml");
  EXPECT_EQ(error.kind, ErrorKind::corrupt);
  EXPECT_EQ(error.message, "run.toml: line 3: no such key");
}

}  // namespace
}  // namespace w5xde
