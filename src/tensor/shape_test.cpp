#include "w5xde/shape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace w5xde {
namespace {

ErrorKind refusal_of(std::vector<std::int64_t> dims) {
  const auto shape = Shape::make(dims);
  EXPECT_FALSE(shape.ok());
  return shape.ok() ? ErrorKind::system : shape.error().kind;
}

TEST(ShapeTest, a_scalar_has_one_element_and_an_empty_tensor_none) {
  EXPECT_EQ(Shape().elements(), 1u);
  EXPECT_EQ(Shape({3, 0, 5}).elements(), 0u);
  EXPECT_EQ(Shape({3, 4, 5}).elements(), 60u);
  EXPECT_EQ(Shape({3, 4, 5}).to_string(), "[3, 4, 5]");
}

TEST(ShapeTest, shapes_are_equal_when_rank_and_sizes_are) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({2, 3, 1}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
}

TEST(ShapeTest, too_many_dimensions_negative_ones_and_overflow_are_refused) {
  EXPECT_EQ(refusal_of({1, 1, 1, 1, 1, 1, 1, 1, 1}), ErrorKind::invalid);
  EXPECT_EQ(refusal_of({2, -1}), ErrorKind::invalid);
  EXPECT_EQ(refusal_of({INT64_MIN}), ErrorKind::invalid);
  EXPECT_EQ(refusal_of({INT64_MAX, INT64_MAX}), ErrorKind::invalid);
  EXPECT_EQ(refusal_of({std::int64_t{1} << 31, std::int64_t{1} << 31}), ErrorKind::invalid);
}

TEST(ShapeTest, a_zero_does_not_hide_an_overflow_before_it) {
  EXPECT_EQ(refusal_of({std::int64_t{1} << 40, std::int64_t{1} << 40, 0}), ErrorKind::invalid);
  EXPECT_EQ(refusal_of({0, INT64_MAX}), ErrorKind::invalid);
}

}  // namespace
}  // namespace w5xde
