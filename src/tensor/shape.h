#pragma once

#include <array>
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
  Shape(std::initializer_list<std::int64_t> dims);

  std::size_t rank() const { return rank_; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), rank_}; }
  std::int64_t operator[](std::size_t i) const { return dims_[i]; }
  std::uint64_t elements() const { return elements_; }

  bool operator==(const Shape& other) const;
  std::string to_string() const;  // "[64, 3, 3]"

 private:
  std::array<std::int64_t, kRankMax> dims_ = {};
  std::size_t rank_ = 0;
  std::uint64_t elements_ = 1;
};

}  // namespace w5xde
