#include "tensor/tensor_view.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>
#include <vector>

namespace w5xde {
namespace {

// The elements of a view one by one, by the definition of strides: what gather() has to agree with.
std::vector<std::byte> elements_by_definition(const std::byte* first, std::size_t size, const Shape& shape,
                                              const std::vector<std::int64_t>& strides) {
  std::vector<std::byte> out;
  for (std::uint64_t n = 0; n < shape.elements(); ++n) {
    std::int64_t offset = 0;
    std::uint64_t rest = n;
    for (std::size_t i = shape.rank(); i-- > 0;) {
      offset += static_cast<std::int64_t>(rest % static_cast<std::uint64_t>(shape[i])) * strides[i];
      rest /= static_cast<std::uint64_t>(shape[i]);
    }
    const std::byte* element = first + offset * static_cast<std::int64_t>(size);
    out.insert(out.end(), element, element + size);
  }
  return out;
}

std::vector<std::byte> numbered_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 131 + (i >> 8));
  return bytes;
}

TEST(TensorViewTest, row_major_strides_are_contiguous_and_others_are_not) {
  const auto memory = numbered_bytes(24 * 4);
  const std::vector<std::int64_t> row_major = {12, 4, 1}, transposed = {1, 2, 6}, sized_one = {12, 99, 1};
  EXPECT_TRUE(TensorView(memory.data(), DType::f32, Shape{2, 3, 4}, row_major).contiguous());
  EXPECT_FALSE(TensorView(memory.data(), DType::f32, Shape{2, 3, 4}, transposed).contiguous());
  EXPECT_TRUE(TensorView(memory.data(), DType::f32, Shape{2, 1, 12}, sized_one).contiguous());
}

TEST(TensorViewTest, a_flipped_and_an_expanded_tensor_are_gathered) {
  const std::vector<std::int16_t> memory = {1, 2, 3};
  const auto* bytes = reinterpret_cast<const std::byte*>(memory.data());
  const std::vector<std::int64_t> flipped = {-1}, expanded = {0, 1};
  std::vector<std::int16_t> out(3);
  TensorView(bytes + 4, DType::i16, Shape{3}, flipped).gather(0, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out, (std::vector<std::int16_t>{3, 2, 1}));
  out.resize(6);
  TensorView(bytes, DType::i16, Shape{2, 3}, expanded).gather(0, std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out, (std::vector<std::int16_t>{1, 2, 3, 1, 2, 3}));
}

TEST(TensorViewTest, an_empty_tensor_gathers_nothing) {
  const std::vector<std::int64_t> strides = {5, 1};
  const TensorView empty(nullptr, DType::f32, Shape{0, 5}, strides);
  EXPECT_TRUE(empty.contiguous());
  EXPECT_EQ(empty.byte_count(), 0u);
  empty.gather(0, {});
}

RC_GTEST_PROP(TensorViewTest, gathering_in_blocks_of_any_size_gives_the_elements_in_order, ()) {
  const auto dtype = *rc::gen::elementOf(std::vector<DType>(kDTypes.begin(), kDTypes.end()));
  const std::size_t size = size_of(dtype);
  const auto dims = *rc::gen::container<std::vector<std::int64_t>>(4, rc::gen::inRange<std::int64_t>(1, 6));
  const Shape shape = Shape::make(dims).value();
  const auto strides =
      *rc::gen::container<std::vector<std::int64_t>>(4, rc::gen::inRange<std::int64_t>(-7, 8));
  std::int64_t lowest = 0, highest = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    (strides[i] < 0 ? lowest : highest) += strides[i] * (dims[i] - 1);
  }
  const auto memory = numbered_bytes(static_cast<std::size_t>(highest - lowest + 1) * size);
  const std::byte* first = memory.data() - lowest * static_cast<std::int64_t>(size);
  const TensorView view(first, dtype, shape, strides);

  std::vector<std::byte> gathered;
  for (std::uint64_t at = 0; at < shape.elements();) {
    const auto left = static_cast<int>(shape.elements() - at);
    const auto count = static_cast<std::size_t>(*rc::gen::inRange(1, left + 1));
    std::vector<std::byte> block(count * size);
    view.gather(at, block);
    gathered.insert(gathered.end(), block.begin(), block.end());
    at += count;
  }
  RC_ASSERT(gathered == elements_by_definition(first, size, shape, strides));
}

}  // namespace
}  // namespace w5xde
