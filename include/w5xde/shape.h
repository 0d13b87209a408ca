#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "w5xde/result.h"

namespace w5xde {

// No model in use comes near it, and it lets a shape live without an allocation.
inline constexpr std::size_t kRankMax = 8;

// The sizes of a tensor's dimensions, outermost first. Rank 0 is a scalar, with one element. A Shape that
// exists has at most kRankMax dimensions, none negative, and an element count below 2^62: sizes in bytes
// cannot overflow.
class Shape {
 public:
  Shape() = default;
  static Result<Shape> make(std::span<const std::int64_t> dims);
  // For shapes that the program itself writes down; asserts what make() checks.
  Shape(std::initializer_list<std::int64_t> dims) {
    auto made = make({dims.begin(), dims.size()});
    assert(made.ok());
    *this = made.value();
  }

  std::size_t rank() const { return rank_; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), rank_}; }
  std::int64_t operator[](std::size_t i) const { return dims_[i]; }
  std::uint64_t elements() const { return elements_; }

  bool operator==(const Shape& other) const { return std::ranges::equal(dims(), other.dims()); }
  std::string to_string() const { return to_string(dims()); }  // "[64, 3, 3]"

 private:
  static constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 58;  // times 16 bytes stays below 2^62
  static std::string to_string(std::span<const std::int64_t> dims);

  std::array<std::int64_t, kRankMax> dims_ = {};
  std::size_t rank_ = 0;
  std::uint64_t elements_ = 1;
};

inline Result<Shape> Shape::make(std::span<const std::int64_t> dims) {
  if (dims.size() > kRankMax)
    return invalid("a shape of " + std::to_string(dims.size()) + " dimensions; at most " +
                   std::to_string(kRankMax));
  Shape shape;
  shape.rank_ = dims.size();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0)
      return invalid("dimension " + std::to_string(i) + " of a shape is " + std::to_string(dims[i]));
    const auto dim = static_cast<std::uint64_t>(dims[i]);
    // The product is bounded even where a later dimension is 0, so that no order of dimensions slips past.
    if (dim != 0 && std::max<std::uint64_t>(shape.elements_, 1) > kElementsMax / dim)
      return invalid("a shape of " + to_string(dims) + " overflows");
    shape.dims_[i] = dims[i];
    shape.elements_ *= dim;
  }
  return shape;
}

inline std::string Shape::to_string(std::span<const std::int64_t> dims) {
  std::string text = "[";
  for (const std::int64_t dim : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

}  // namespace w5xde
