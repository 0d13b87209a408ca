#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/bytes.h"
#include "tensor/dtype.h"
#include "w5xde/shape.h"

namespace w5xde {

// Looks at a tensor in somebody else's memory, contiguous (row-major) or strided. Owns nothing.
class TensorView {
 public:
  TensorView() = default;
  // Contiguous: `bytes` is shape.elements() * size_of(dtype) long.
  TensorView(Bytes bytes, DType dtype, const Shape& shape, bool requires_grad = false);
  // Strided: `first` is the element at index 0, 0, …; strides count elements, and may be 0 or negative.
  TensorView(const std::byte* first, DType dtype, const Shape& shape, std::span<const std::int64_t> strides,
             bool requires_grad = false);

  // Bytes that are not a tensor of numbers: an encoded section, a file.
  static TensorView of_bytes(Bytes bytes);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  bool requires_grad() const { return requires_grad_; }
  std::uint64_t byte_count() const { return shape_.elements() * size_of(dtype_); }

  bool contiguous() const { return contiguous_; }
  // The tensor's memory; contiguous views only.
  Bytes bytes() const;

  // Copies the elements from number `first` on, in row-major order, until `out` is full. out.size() is a
  // multiple of the element size and does not reach past the last element.
  void gather(std::uint64_t first, MutableBytes out) const;

 private:
  const std::byte* data_ = nullptr;
  DType dtype_ = DType::u8;
  bool requires_grad_ = false;
  bool contiguous_ = true;
  Shape shape_{0};
  std::array<std::int64_t, kRankMax> strides_ = {};
};

}  // namespace w5xde
