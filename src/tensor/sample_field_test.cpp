#include "w5xde/sample_field.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(SampleFieldTest, a_dtype_says_what_a_model_is_given_but_bytes_may_be_pixels_or_ids) {
  using Kind = SampleField::Kind;
  const auto kind_of = [](DType dtype, bool pixels = false) {
    return SampleField{.dtype = dtype, .pixels = pixels}.kind();
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    EXPECT_EQ(kind_of(dtype), Kind::number);
  for (const DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64, DType::u8})
    EXPECT_EQ(kind_of(dtype), Kind::whole);
  EXPECT_EQ(kind_of(DType::u8, true), Kind::number);
  EXPECT_EQ(kind_of(DType::boolean), Kind::flag);
}

TEST(SampleFieldTest, a_sample_takes_its_elements_bytes) {
  EXPECT_EQ((SampleField{.dtype = DType::i16, .shape = {3, 4}}.sample_bytes()), 24u);
  EXPECT_EQ(SampleField{.dtype = DType::i64}.sample_bytes(), 8u);
}

}  // namespace
}  // namespace w5xde
