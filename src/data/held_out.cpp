#include "data/held_out.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/random.h"

namespace w5xde {

namespace {

// The shuffles of epochs mix the seed with their numbers: no epoch has this one.
constexpr std::uint64_t kSplitPart = 0x73706c6974;

class PartOfDataset final : public Dataset {
 public:
  PartOfDataset(std::shared_ptr<const Dataset> whole, std::vector<std::uint32_t> numbers)
      : whole_(std::move(whole)), numbers_(std::move(numbers)) {}

  std::uint64_t samples() const override { return numbers_.size(); }
  std::span<const Field> inputs() const override { return whole_->inputs(); }
  const Field& targets() const override { return whole_->targets(); }
  std::uint32_t classes() const override { return whole_->classes(); }
  std::vector<std::string> legend() const override { return whole_->legend(); }
  bool gathers_slowly() const override { return whole_->gathers_slowly(); }
  std::uint32_t number_in_whole(std::uint32_t number) const override {
    return whole_->number_in_whole(numbers_[number]);
  }

  Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                MutableBytes targets) const override {
    std::vector<std::uint32_t> in_whole(numbers.size());
    std::ranges::transform(numbers, in_whole.begin(),
                           [this](std::uint32_t number) { return numbers_[number]; });
    return whole_->gather(in_whole, inputs, targets);
  }

 private:
  std::shared_ptr<const Dataset> whole_;
  std::vector<std::uint32_t> numbers_;
};

}  // namespace

Result<Parts> hold_out(const std::shared_ptr<const Dataset>& whole, double fraction, std::uint64_t seed) {
  const std::uint64_t samples = whole->samples();
  if (samples < 2) return invalid("{} sample cannot be split in two parts; leave --split out", samples);
  const double asked = std::round(fraction * static_cast<double>(samples));
  const auto held_out = static_cast<std::uint64_t>(std::clamp(asked, 1.0, static_cast<double>(samples - 1)));
  std::vector<std::uint32_t> order(samples);
  std::iota(order.begin(), order.end(), 0u);
  Random random(mix(seed, kSplitPart));
  for (std::uint64_t i = 0; i < held_out; ++i) std::swap(order[i], order[i + random.below(samples - i)]);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(held_out);
  std::sort(order.begin(), middle);
  std::sort(middle, order.end());
  return Parts{
      std::make_shared<PartOfDataset>(whole, std::vector(middle, order.end())),
      std::make_shared<PartOfDataset>(whole, std::vector(order.begin(), middle)),
  };
}

}  // namespace w5xde
