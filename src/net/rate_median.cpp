#include "net/rate_median.h"

#include <algorithm>
#include <array>
#include <utility>

namespace w5xde {

namespace {

// Two that are far off in a row are outvoted; a link that has changed is believed with the third.
constexpr std::size_t kKept = 5;

}  // namespace

RateMedian::RateMedian() {
  kept_.reserve(kKept + 1);
}

void RateMedian::add(double bytes_per_second, bool sender_limited) {
  const Estimate estimate{bytes_per_second, sender_limited};
  if (bytes_per_second <= 0 || std::exchange(last_, estimate) == estimate) return;
  if (sender_limited && bytes_per_second <= this->bytes_per_second()) return;
  std::erase_if(kept_, [&](const Estimate& lower) {
    return lower.sender_limited && lower.bytes_per_second <= bytes_per_second;
  });
  kept_.push_back(estimate);
  if (kept_.size() > kKept) kept_.erase(kept_.begin());
}

double RateMedian::bytes_per_second() const {
  if (kept_.empty()) return 0;
  std::array<double, kKept> rates{};
  std::ranges::transform(kept_, rates.begin(), &Estimate::bytes_per_second);
  // Of two the higher: a node whose link is taken for slow gets no work to prove otherwise.
  const auto middle = rates.begin() + static_cast<std::ptrdiff_t>(kept_.size() / 2);
  std::nth_element(rates.begin(), middle, rates.begin() + static_cast<std::ptrdiff_t>(kept_.size()));
  return *middle;
}

bool RateMedian::limited_by_link() const {
  return std::ranges::count(kept_, false, &Estimate::sender_limited) > static_cast<std::ptrdiff_t>(kKept / 2);
}

}  // namespace w5xde
