#include "tensor/tensor_view.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace w5xde {

namespace {

using Strides = std::array<std::int64_t, kRankMax>;

bool is_row_major(const Shape& shape, const Strides& strides) {
  std::int64_t expected = 1;
  for (std::size_t i = shape.rank(); i-- > 0;) {
    // The stride of a dimension of size 1 is never used.
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

// Walks the elements of a strided tensor in row-major order, one run along the innermost dimension at a time.
class Walk {
 public:
  Walk(const Shape& shape, const Strides& strides, std::uint64_t first) : shape_(shape), strides_(strides) {
    for (std::size_t i = shape.rank(); i-- > 0;) {
      const auto dim = static_cast<std::uint64_t>(shape[i]);
      index_[i] = static_cast<std::int64_t>(first % dim);
      offset_ += index_[i] * strides[i];
      first /= dim;
    }
  }

  // Where the next element is, counted in elements from the first one.
  std::int64_t offset() const { return offset_; }
  std::uint64_t run() const { return static_cast<std::uint64_t>(shape_[last()] - index_[last()]); }

  void advance(std::uint64_t elements) {
    index_[last()] += static_cast<std::int64_t>(elements);
    offset_ += static_cast<std::int64_t>(elements) * strides_[last()];
    for (std::size_t i = last(); index_[i] == shape_[i] && i > 0; --i) {
      offset_ += strides_[i - 1] - index_[i] * strides_[i];
      index_[i] = 0;
      ++index_[i - 1];
    }
  }

 private:
  std::size_t last() const { return shape_.rank() - 1; }

  const Shape& shape_;
  const Strides& strides_;
  std::array<std::int64_t, kRankMax> index_ = {};
  std::int64_t offset_ = 0;
};

// The size is a template argument so that each memcpy is one load and one store.
template <std::size_t kSize>
void copy_spread(const std::byte* from, std::int64_t stride, std::uint64_t count, std::byte* to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(to, from, kSize);
    from += stride * static_cast<std::int64_t>(kSize);
    to += kSize;
  }
}

void copy_run(const std::byte* from, std::int64_t stride, std::uint64_t count, std::size_t size,
              std::byte* to) {
  if (stride == 1) {
    std::memcpy(to, from, count * size);
    return;
  }
  switch (size) {
    case 1:
      return copy_spread<1>(from, stride, count, to);
    case 2:
      return copy_spread<2>(from, stride, count, to);
    case 4:
      return copy_spread<4>(from, stride, count, to);
    case 8:
      return copy_spread<8>(from, stride, count, to);
    default:
      return copy_spread<16>(from, stride, count, to);
  }
}

}  // namespace

TensorView::TensorView(Bytes bytes, DType dtype, const Shape& shape, bool requires_grad)
    : data_(bytes.data()), dtype_(dtype), requires_grad_(requires_grad), shape_(shape) {
  assert(bytes.size() == byte_count());
}

TensorView::TensorView(const std::byte* first, DType dtype, const Shape& shape,
                       std::span<const std::int64_t> strides, bool requires_grad)
    : data_(first), dtype_(dtype), requires_grad_(requires_grad), shape_(shape) {
  assert(strides.size() == shape.rank());
  std::ranges::copy(strides, strides_.begin());
  contiguous_ = shape.elements() == 0 || is_row_major(shape, strides_);
}

TensorView TensorView::of_bytes(Bytes bytes) {
  return {bytes, DType::u8, Shape{static_cast<std::int64_t>(bytes.size())}};
}

Bytes TensorView::bytes() const {
  assert(contiguous_);
  return {data_, byte_count()};
}

void TensorView::gather(std::uint64_t first, MutableBytes out) const {
  const std::size_t size = size_of(dtype_);
  assert(out.size() % size == 0 && first + out.size() / size <= shape_.elements());
  if (contiguous_) {
    if (!out.empty()) std::memcpy(out.data(), data_ + first * size, out.size());
    return;
  }
  Walk walk(shape_, strides_, first);
  while (!out.empty()) {
    const std::uint64_t count = std::min<std::uint64_t>(walk.run(), out.size() / size);
    copy_run(data_ + walk.offset() * static_cast<std::int64_t>(size), strides_[shape_.rank() - 1], count,
             size, out.data());
    walk.advance(count);
    out = out.subspan(count * size);
  }
}

}  // namespace w5xde
