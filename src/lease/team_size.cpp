#include "lease/team_size.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace w5xde {

double TeamSize::Window::median() const {
  auto sorted = steps;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

// A trial that has cost half a window's time, and makes a step clearly longer, ends.
bool TeamSize::hopeless() const {
  const double usual = usual_ * static_cast<double>(window_.steps.size());
  return window_.seconds - usual > std::max(kWindowSeconds / 2, (1 / kClearlyLess - 1) * usual_);
}

std::size_t TeamSize::current(const Pool& pool) const {
  return size_ == 0 ? pool.workers : std::min(size_, pool.workers);
}

void TeamSize::settle(std::size_t size, const Pool& pool) {
  size_ = size >= pool.workers ? 0 : size;
  one_per_machine_ = size_ > 0 && size_ == pool.machines;
  trial_.reset();
  window_ = {};
  usual_ = 0;
  windows_ = 0;
  skip_ = kWarmUp;
}

void TeamSize::remember(const Pool& pool) {
  computing_[current(pool)] = pool.compute_seconds / static_cast<double>(current(pool));
}

// Machines join and leave, and steps may become too short for a machine's cores to share one lease.
void TeamSize::follow_machines(const Pool& pool) {
  if (!one_per_machine_ || trial_ || current(pool) == std::min(pool.machines, pool.workers)) return;
  size_ = pool.machines >= pool.workers ? 0 : pool.machines;
  changed();
}

void TeamSize::guess(const Pool& pool) {
  remember(pool);
  // k exchanges one after the other, and a k-th of the computing: shortest where both take equally long.
  // Rounded down: nodes may share cores that nobody knows of.
  const double best = std::floor(std::sqrt(pool.compute_seconds / std::max(pool.exchange_seconds, 1e-9)));
  const auto most = static_cast<double>(std::min(pool.workers, pool.machines));
  settle(static_cast<std::size_t>(std::clamp(best, 1.0, most)), pool);
  // One more machine would be too many.
  if (best <= most) one_per_machine_ = false;
  windows_between_ = kWarmUp;
}

void TeamSize::disturbed() {
  window_ = {};
  skip_ = std::max<std::size_t>(skip_, 1);
}

void TeamSize::changed() {
  window_ = {};
  skip_ = kWarmUp;
}

// How long a step with another number of nodes takes if all goes well. With more nodes, each link carries no
// more than its share of the exchanges. With fewer, the exchanges no longer wait for each other, and neither
// do nodes that share cores: what this number computed in before counts if it is less.
double TeamSize::at_best(std::size_t size, const Pool& pool) const {
  const std::size_t now = current(pool);
  const auto ratio = [](std::size_t left, std::size_t right) {
    return static_cast<double>(left) / static_cast<double>(right);
  };
  const double compute = std::min(usual_, pool.compute_seconds / static_cast<double>(now));
  const double exchanges =
      size < now ? ratio(size, now)
                 : std::max(1.0, ratio(size, pool.links)) / std::max(1.0, ratio(now, pool.links));
  const double computing = compute * ratio(std::min(now, pool.machines), std::min(size, pool.machines));
  const auto before = computing_.find(size);
  return (usual_ - compute) * exchanges +
         (before == computing_.end() ? computing : std::min(computing, before->second));
}

double TeamSize::bar(std::size_t size, std::size_t now, std::size_t machines) {
  if (size < now && size == machines) return 1 + kSmallPart;
  if (size > now && now == machines) return kShorter / (1 + kSmallPart);
  return kShorter;
}

std::optional<std::size_t> TeamSize::worth_trying(const Pool& pool) const {
  const std::size_t now = current(pool);
  const std::size_t more = std::min(2 * now, pool.workers);
  const std::size_t fewer = pool.machines < now ? pool.machines : (now + 1) / 2;
  const auto could_pay = [&](std::size_t size) {
    return size > 0 && size != now && at_best(size, pool) < bar(size, now, pool.machines) * usual_;
  };
  for (const std::size_t size : fewer_first_ ? std::array{fewer, more} : std::array{more, fewer}) {
    if (could_pay(size)) return size;
  }
  return std::nullopt;
}

void TeamSize::judge(bool better, const Pool& pool) {
  // What paid is tried further; what failed is tried again after the opposite.
  fewer_first_ = better != (*trial_ > current(pool));
  windows_between_ = better ? kWarmUp : std::min(2 * windows_between_, kWindowsBetweenMax);
  const double usual = usual_;
  settle(better ? *trial_ : size_, pool);
  if (!better) usual_ = usual;
}

void TeamSize::step_done(double seconds, const Pool& pool) {
  follow_machines(pool);
  if (skip_ > 0) {
    --skip_;
    return;
  }
  window_.steps.push_back(seconds);
  window_.seconds += seconds;
  if (trial_) {
    const bool failed = hopeless();
    const double longest = bar(*trial_, current(pool), pool.machines) * usual_;
    if (failed || window_.full()) judge(!failed && window_.median() < longest, pool);
    return;
  }
  if (!window_.full()) return;
  const double median = window_.median();
  window_ = {};
  if (usual_ > 0 && (median > kNoiseRatio * usual_ || usual_ > kNoiseRatio * median))
    windows_between_ = kWarmUp;
  usual_ = median;
  remember(pool);
  if (++windows_ < windows_between_) return;
  windows_ = 0;
  trial_ = worth_trying(pool);
  if (trial_) skip_ = kWarmUp;
}

}  // namespace w5xde
