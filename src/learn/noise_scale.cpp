#include "learn/noise_scale.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace w5xde {

namespace {

// Fixed, so that the order of the sums does not depend on the number of threads.
constexpr std::size_t kFloatsPerTask = 128 * 1024;

// Of the halves' sums of gradients.
struct Products {
  double left = 0, right = 0, both = 0;  // |l|², |r|², l·r

  Products& operator+=(const Products& other) {
    left += other.left;
    right += other.right;
    both += other.both;
    return *this;
  }
};

Products products_of(std::span<const float> left, std::span<const float> right) {
  // Side by side: a single sum would wait for itself at every addition.
  constexpr std::size_t kLanes = 8;
  Products lanes[kLanes];
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double l = left[i], r = right[i];
    lanes[i % kLanes] += {l * l, r * r, l * r};
  }
  Products sum;
  for (const Products& lane : lanes) sum += lane;
  return sum;
}

Products products_of(std::span<const float> left, std::span<const float> right, ThreadPool* pool) {
  std::vector<Products> parts((left.size() + kFloatsPerTask - 1) / kFloatsPerTask);
  const auto part = [&](std::size_t task) {
    const std::size_t first = task * kFloatsPerTask;
    const std::size_t count = std::min(kFloatsPerTask, left.size() - first);
    parts[task] = products_of(left.subspan(first, count), right.subspan(first, count));
  };
  if (pool != nullptr && parts.size() > 1) {
    pool->for_each(parts.size(), part);
  } else {
    for (std::size_t task = 0; task < parts.size(); ++task) part(task);
  }
  Products sum;
  for (const Products& products : parts) sum += products;
  return sum;
}

}  // namespace

void NoiseScale::add(const HalfSum& left, const HalfSum& right, std::uint64_t gradient_floats,
                     ThreadPool* pool) {
  if (left.sums.samples == 0 || right.sums.samples == 0) return;
  const Products sums =
      products_of(left.values.first(gradient_floats), right.values.first(gradient_floats), pool);
  const auto left_samples = static_cast<double>(left.sums.samples);
  const auto right_samples = static_cast<double>(right.sums.samples);
  const double signal = sums.both / (left_samples * right_samples);
  const double distance =
      sums.left / (left_samples * left_samples) + sums.right / (right_samples * right_samples) - 2 * signal;
  const double noise = distance / (1 / left_samples + 1 / right_samples);
  ++means_.steps;
  // A plain mean at first.
  const double weight = std::max(1 / static_cast<double>(means_.steps), weight_);
  means_.noise += weight * (noise - means_.noise);
  means_.signal += weight * (signal - means_.signal);
}

double NoiseScale::value() const {
  return means_.signal > 0 ? means_.noise / means_.signal : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace w5xde
