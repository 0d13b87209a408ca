#include "tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>

namespace w5xde {

namespace {

constexpr std::uint64_t kElementsMax = std::uint64_t{1} << 58;  // times 16 bytes stays below 2^62

}  // namespace

Result<Shape> Shape::make(std::span<const std::int64_t> dims) {
  if (dims.size() > kRankMax)
    return invalid(fmt::format("a shape of {} dimensions; at most {}", dims.size(), kRankMax));
  Shape shape;
  shape.rank_ = dims.size();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) return invalid(fmt::format("dimension {} of a shape is {}", i, dims[i]));
    const auto dim = static_cast<std::uint64_t>(dims[i]);
    // The product is bounded even where a later dimension is 0, so that no order of dimensions slips past.
    if (dim != 0 && std::max<std::uint64_t>(shape.elements_, 1) > kElementsMax / dim) {
      return invalid(fmt::format("a shape of [{}] overflows", fmt::join(dims, ", ")));
    }
    shape.dims_[i] = dims[i];
    shape.elements_ *= dim;
  }
  return shape;
}

Shape::Shape(std::initializer_list<std::int64_t> dims) {
  auto made = make({dims.begin(), dims.size()});
  assert(made.ok());
  *this = made.value();
}

bool Shape::operator==(const Shape& other) const {
  return std::ranges::equal(dims(), other.dims());
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(dims(), ", "));
}

}  // namespace w5xde
