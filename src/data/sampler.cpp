#include "data/sampler.h"

#include <cassert>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace w5xde {

namespace {

// The epoch at hand, the one before and the one after.
constexpr std::size_t kOrdersMax = 3;

void shuffle(std::vector<std::uint32_t>& numbers, Random& random) {
  for (std::size_t left = numbers.size(); left > 1; --left) {
    std::swap(numbers[left - 1], numbers[random.below(left)]);
  }
}

}  // namespace

Sampler::Sampler(const Options& options) : options_(options) {
  assert(options.samples > 0 && options.samples <= UINT32_MAX && options.batch > 0);
}

std::uint64_t Sampler::slots_per_epoch() const {
  const std::uint64_t full = options_.samples / options_.batch, left = options_.samples % options_.batch;
  const bool joins = options_.shuffle && left == 1 && full > 0;
  return full + (left > 0 && !joins ? 1 : 0);
}

std::span<const std::uint32_t> Sampler::samples_of(std::uint64_t slot) {
  const std::uint64_t first = slot % slots_per_epoch() * options_.batch;
  return std::span(order_of(epoch_of(slot))).subspan(first, count_of(slot));
}

std::uint32_t Sampler::count_of(std::uint64_t slot) const {
  if (!is_last(slot)) return options_.batch;
  return static_cast<std::uint32_t>(options_.samples - (slots_per_epoch() - 1) * options_.batch);
}

std::uint64_t Sampler::samples_before(std::uint64_t slot) const {
  // Every slot of an epoch but its last has `batch` samples, and no slot before this one is that last.
  return epoch_of(slot) * options_.samples + slot % slots_per_epoch() * options_.batch;
}

const std::vector<std::uint32_t>& Sampler::order_of(std::uint64_t epoch) {
  if (!options_.shuffle) epoch = 0;  // one order serves all
  if (const auto found = orders_.find(epoch); found != orders_.end()) return found->second;
  if (orders_.size() == kOrdersMax) {
    // The epoch farthest from `epoch` goes. The map is sorted, so it is the first or the last.
    const auto first = orders_.begin();
    const auto last = std::prev(orders_.end());
    const bool first_is_farther = epoch > first->first && epoch - first->first > last->first - epoch;
    orders_.erase(epoch > last->first || first_is_farther ? first : last);
  }
  std::vector<std::uint32_t> order(options_.samples);
  std::iota(order.begin(), order.end(), 0u);
  if (options_.shuffle) {
    Random random(mix(options_.seed, epoch));
    shuffle(order, random);
  }
  return orders_.emplace(epoch, std::move(order)).first->second;
}

}  // namespace w5xde
