#include "w5xde/dtype.h"

#include <gtest/gtest.h>

#include "tensor/dtype.h"

namespace w5xde {
namespace {

TEST(DTypeTest, the_numbers_on_the_wire_are_pinned) {
  const char* expected[] = {"f32", "f64", "f16", "bf16", "i64", "i32",
                            "i16", "i8",  "u8",  "bool", "c64", "c128"};
  ASSERT_EQ(kDTypes.size(), 12u);
  for (std::uint8_t number = 1; number <= 12; ++number) {
    const auto dtype = dtype_from_wire(number);
    ASSERT_TRUE(dtype.ok());
    EXPECT_EQ(name_of(*dtype), expected[number - 1]);
    EXPECT_EQ(kDTypes[number - 1u], *dtype);
  }
}

TEST(DTypeTest, sizes_are_those_of_the_machine_types) {
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::boolean), 1u);
  EXPECT_EQ(size_of(DType::c64), 8u);
  EXPECT_EQ(size_of(DType::c128), 16u);
}

TEST(DTypeTest, names_are_read_back_and_strangers_refused) {
  for (const DType dtype : kDTypes) EXPECT_EQ(parse_dtype(name_of(dtype)).value(), dtype);
  EXPECT_EQ(parse_dtype("float").error().kind, ErrorKind::invalid);
  EXPECT_EQ(dtype_from_wire(0).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(dtype_from_wire(13).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(dtype_from_wire(255).error().kind, ErrorKind::corrupt);
}

}  // namespace
}  // namespace w5xde
