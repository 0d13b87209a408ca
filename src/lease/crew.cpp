#include "lease/crew.h"

#include <algorithm>
#include <cmath>

#include "lease/tuning.h"

namespace w5xde {

namespace {

constexpr std::size_t kWindowSteps = 3;
constexpr double kWindowSeconds = 0.5;
// Leases of the step ahead are out already when others come to take part, and those have to warm up.
constexpr std::size_t kSkippedSteps = 2;
// Another size must make steps so much shorter; one of each machine may even seem to make them longer.
constexpr double kBetter = kOtherSizePays, kOneEach = 1.1;
// A trial that has cost so much more than as many usual steps ends: part of one of them, and seconds.
constexpr double kTrialCost = 0.4, kTrialSeconds = 0.25;
// Steps that come to take so much longer, or shorter, have another reason to: what failed may pay now.
constexpr double kOtherTimes = 1.5;
// Trials that failed are repeated ever more rarely: conditions change, but not all the time.
constexpr std::size_t kWindowsBetweenMin = 2, kWindowsBetweenMax = 256;

}  // namespace

Crew::Crew() : windows_between_(kWindowsBetweenMin) {}

void Crew::Window::add(double step) {
  steps.push_back(step);
  seconds += step;
}

bool Crew::Window::full() const {
  return steps.size() >= kWindowSteps && seconds >= kWindowSeconds;
}

double Crew::Window::median() const {
  auto sorted = steps;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

bool Crew::hopeless() const {
  const double usual = usual_ * static_cast<double>(window_.steps.size());
  return window_.seconds - usual > std::max(kTrialSeconds, kTrialCost * usual_);
}

std::size_t Crew::current(const Pool& pool) const {
  return size_ == 0 ? pool.workers : std::min(size_, pool.workers);
}

void Crew::settle(std::size_t size, const Pool& pool) {
  size_ = size >= pool.workers ? 0 : size;
  one_each_ = size_ > 0 && size_ == pool.machines;
  trial_.reset();
  window_ = {};
  usual_ = 0;
  windows_ = 0;
  skip_ = kSkippedSteps;
}

void Crew::remember(const Pool& pool) {
  computing_[current(pool)] = pool.compute_seconds / static_cast<double>(current(pool));
}

// Machines come and go, and steps may get too short for a machine's cores to share one lease.
void Crew::follow_machines(const Pool& pool) {
  if (!one_each_ || trial_ || current(pool) == std::min(pool.machines, pool.workers)) return;
  size_ = pool.machines >= pool.workers ? 0 : pool.machines;
  changed();
}

void Crew::guess(const Pool& pool) {
  remember(pool);
  // k exchanges one after the other, and a k-th of the computing: least where both take as long. Rather too
  // few: nodes may share cores that nobody knows of.
  const double best = std::floor(std::sqrt(pool.compute_seconds / std::max(pool.exchange_seconds, 1e-9)));
  const auto most = static_cast<double>(std::min(pool.workers, pool.machines));
  settle(static_cast<std::size_t>(std::clamp(best, 1.0, most)), pool);
  // Another machine's would be one too many.
  if (best <= most) one_each_ = false;
  windows_between_ = kWindowsBetweenMin;
}

void Crew::disturbed() {
  window_ = {};
  skip_ = std::max<std::size_t>(skip_, 1);
}

void Crew::changed() {
  window_ = {};
  skip_ = kSkippedSteps;
}

// How long a step of another size could take if all goes well: with more nodes each link carries no more
// exchanges than its share, with fewer the exchanges were all in each other's way, and nodes perhaps as well:
// so many may have computed faster before there were more.
double Crew::at_best(std::size_t size, const Pool& pool) const {
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

// What part of the usual time steps of another size must not exceed.
double Crew::bar(std::size_t size, const Pool& pool) const {
  const std::size_t now = current(pool);
  if (size < now && size == pool.machines) return kOneEach;
  if (size > now && now == pool.machines) return kBetter / kOneEach;
  return kBetter;
}

std::optional<std::size_t> Crew::worth_trying(const Pool& pool) const {
  const std::size_t now = current(pool);
  const std::size_t more = std::min(2 * now, pool.workers);
  const std::size_t fewer = pool.machines < now ? pool.machines : (now + 1) / 2;
  const auto could_pay = [&](std::size_t size) {
    return size > 0 && size != now && at_best(size, pool) < bar(size, pool) * usual_;
  };
  const bool try_more = could_pay(more), try_fewer = could_pay(fewer);
  if (try_more && try_fewer) return fewer_first_ ? fewer : more;
  if (try_more) return more;
  if (try_fewer) return fewer;
  return std::nullopt;
}

void Crew::judge(bool better, const Pool& pool) {
  const std::size_t tried = *trial_;
  const bool more = tried > current(pool);
  // What went well is gone on with, what failed is tried again after the other.
  fewer_first_ = better != more;
  if (better) {
    settle(tried, pool);
    windows_between_ = kWindowsBetweenMin;
    return;
  }
  const double usual = usual_;
  settle(size_, pool);
  usual_ = usual;
  windows_between_ = std::min(2 * windows_between_, kWindowsBetweenMax);
}

void Crew::step_done(double seconds, const Pool& pool) {
  follow_machines(pool);
  if (skip_ > 0) {
    --skip_;
    return;
  }
  window_.add(seconds);
  if (trial_) {
    const bool failed = hopeless();
    if (failed || window_.full()) judge(!failed && window_.median() < bar(*trial_, pool) * usual_, pool);
    return;
  }
  if (!window_.full()) return;
  const double median = window_.median();
  window_ = {};
  if (usual_ > 0 && (median > kOtherTimes * usual_ || usual_ > kOtherTimes * median))
    windows_between_ = kWindowsBetweenMin;
  usual_ = median;
  remember(pool);
  if (++windows_ < windows_between_) return;
  windows_ = 0;
  trial_ = worth_trying(pool);
  if (trial_) skip_ = kSkippedSteps;
}

}  // namespace w5xde
