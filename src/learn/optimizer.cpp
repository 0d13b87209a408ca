#include "learn/optimizer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/errors.h"
#include "w5xde/no_gradient.h"

namespace w5xde {

namespace {

using Kind = OptimizerOptions::Kind;

// Large enough for a thread hop to be worth it, and fixed, so that sums over tasks are too.
constexpr std::size_t kFloatsPerTask = 128 * 1024;
// What is checked and then stepped while it is in the first-level cache: 16 KB of each array.
constexpr std::size_t kFloatsInCache = 4096;

// The ranges of one pass. Raw pointers: the loops below must see that nothing aliases, but for a version
// that is stepped in place.
struct Range {
  const float* before;
  float* after;
  const float* gradient;
  std::size_t count;
};

struct SgdStep {
  float rate, momentum, decay, scale;
  bool nesterov, first;
};

void sgd_plain(const Range& range, const SgdStep& step) {
  const float* before = range.before;
  float* after = range.after;
  const float* __restrict gradient = range.gradient;
  for (std::size_t i = 0; i < range.count; ++i) {
    const float g = gradient[i] * step.scale + step.decay * before[i];
    after[i] = before[i] - step.rate * g;
  }
}

void sgd_momentum(const Range& range, float* __restrict velocity, const SgdStep& step) {
  const float* before = range.before;
  float* after = range.after;
  const float* __restrict gradient = range.gradient;
  for (std::size_t i = 0; i < range.count; ++i) {
    const float g = gradient[i] * step.scale + step.decay * before[i];
    const float v = step.first ? g : step.momentum * velocity[i] + g;
    velocity[i] = v;
    after[i] = before[i] - step.rate * (step.nesterov ? g + step.momentum * v : v);
  }
}

struct AdamStep {
  float beta1, beta2, epsilon, scale;
  float decay;            // added to the gradient (adam)
  float shrink;           // parameters are multiplied by this first (adamw)
  float step_size;        // rate / bias correction of the first moment
  float root_correction;  // square root of the second moment's bias correction
};

void adam(const Range& range, float* __restrict first, float* __restrict second, const AdamStep& step) {
  const float* before = range.before;
  float* after = range.after;
  const float* __restrict gradient = range.gradient;
  const float rest1 = 1.0f - step.beta1, rest2 = 1.0f - step.beta2;
  for (std::size_t i = 0; i < range.count; ++i) {
    const float p = before[i] * step.shrink;
    const float g = gradient[i] * step.scale + step.decay * p;
    const float m = first[i] * step.beta1 + rest1 * g;
    const float v = second[i] * step.beta2 + rest2 * g * g;
    first[i] = m;
    second[i] = v;
    after[i] = p - step.step_size * (m / (std::sqrt(v) / step.root_correction + step.epsilon));
  }
}

void over_ranges(std::size_t count, ThreadPool* pool,
                 const std::function<void(std::size_t, std::size_t)>& body) {
  const std::size_t tasks = (count + kFloatsPerTask - 1) / kFloatsPerTask;
  const auto run = [&](std::size_t task) {
    const std::size_t first = task * kFloatsPerTask;
    body(first, std::min(kFloatsPerTask, count - first));
  };
  if (pool == nullptr || tasks < 2) {
    for (std::size_t task = 0; task < tasks; ++task) run(task);
  } else {
    pool->for_each(tasks, run);
  }
}

}  // namespace

Result<Kind> parse_optimizer(std::string_view name) {
  for (const Kind kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
    if (name_of(kind) == name) return kind;
  }
  return invalid("'{}' is not an optimizer; use sgd, adam or adamw", name);
}

std::string_view name_of(Kind kind) {
  return kind == Kind::sgd ? "sgd" : kind == Kind::adam ? "adam" : "adamw";
}

Status OptimizerOptions::check() const {
  const auto refuse = [](const char* what, double value) { return invalid("{} cannot be {}", what, value); };
  if (!(learning_rate >= 0) || !std::isfinite(learning_rate)) return refuse("a learning rate", learning_rate);
  if (!(momentum >= 0 && momentum < 1)) return refuse("a momentum", momentum);
  if (!(weight_decay >= 0) || !std::isfinite(weight_decay)) return refuse("a weight decay", weight_decay);
  if (!(beta1 >= 0 && beta1 < 1)) return refuse("beta1", beta1);
  if (!(beta2 >= 0 && beta2 < 1)) return refuse("beta2", beta2);
  if (!(epsilon > 0)) return refuse("epsilon", epsilon);
  if (nesterov && momentum == 0) return invalid("Nesterov needs a momentum");
  return {};
}

Optimizer::Optimizer(const OptimizerOptions& options, const std::shared_ptr<const BlockLayout>& layout)
    : options_(options),
      layout_(layout),
      without_gradient_(layout->entries().size()),
      left_alone_(layout->entries().size()) {
  if (options.kind == Kind::sgd) {
    if (options.momentum != 0) states_.push_back({"momentum", ParameterBlock(layout)});
  } else {
    states_.push_back({"first_moment", ParameterBlock(layout)});
    states_.push_back({"second_moment", ParameterBlock(layout)});
  }
}

void Optimizer::set_steps(std::uint64_t steps, std::span<const std::uint64_t> without_gradient) {
  steps_ = steps;
  std::ranges::fill(without_gradient_, 0);
  std::ranges::copy(without_gradient, without_gradient_.begin());
}

// Neighbours that had a gradient equally often go in one pass: all of them, as a rule.
bool Optimizer::step_part(std::size_t begin, const Versions& parameters, std::span<const float> gradient,
                          float gradient_scale, double learning_rate, ThreadPool* pool) {
  assert(parameters.before.size() == gradient.size() && parameters.after.size() == gradient.size());
  // States are stepped where they are: what must not be added to them is found before.
  if (!states_.empty() && !all_finite_in_parallel(gradient, pool)) return false;
  const auto without_gradient = without_gradient_;
  const auto entries = layout_->entries();
  const std::size_t end = begin + gradient.size();
  std::size_t from = begin;
  std::uint64_t steps = 0;  // that the floats from there on have had with this one; 0: they are left alone
  bool finite = true;
  const auto pass_up_to = [&](std::size_t to) {
    const Versions part = parameters.part(from - begin, to - from);
    if (steps > 0 && to > from) {
      finite = step_alike(steps, from, part, gradient.subspan(from - begin, to - from), gradient_scale,
                          learning_rate, pool) &&
               finite;
    } else if (part.before.data() != part.after.data()) {
      std::ranges::copy(part.before, part.after.begin());
    }
    from = to;
  };
  // The first one may have begun in an earlier part, which has decided.
  const auto later = std::ranges::upper_bound(entries, begin, {}, &BlockLayout::Entry::offset);
  auto i = static_cast<std::size_t>(later - entries.begin());
  for (i -= i > 0 ? 1 : 0; i < entries.size() && entries[i].offset < end; ++i) {
    const std::size_t first = entries[i].offset;
    if (first >= begin && entries[i].shape.elements() > 0) {
      left_alone_[i] = !has_gradient(gradient[first - begin]);
      if (left_alone_[i]) ++without_gradient_[i];
    }
    const std::uint64_t steps_here = left_alone_[i] ? 0 : steps_ - without_gradient_[i];
    if (steps_here == steps) continue;
    pass_up_to(std::max(first, begin));
    steps = steps_here;
  }
  pass_up_to(end);
  if (!finite) without_gradient_ = without_gradient;
  return finite;
}

bool Optimizer::step_alike(std::uint64_t steps, std::size_t begin, const Versions& parameters,
                           std::span<const float> gradient, float gradient_scale, double learning_rate,
                           ThreadPool* pool) {
  const auto range = [&](std::size_t first, std::size_t count) {
    return Range{parameters.before.data() + first, parameters.after.data() + first, gradient.data() + first,
                 count};
  };
  const auto state = [&](std::size_t number, std::size_t first) {
    return states_[number].block.values().data() + begin + first;
  };
  if (options_.kind == Kind::sgd) {
    const SgdStep sgd{.rate = static_cast<float>(learning_rate),
                      .momentum = static_cast<float>(options_.momentum),
                      .decay = static_cast<float>(options_.weight_decay),
                      .scale = gradient_scale,
                      .nesterov = options_.nesterov,
                      .first = steps == 1};
    std::atomic<bool> finite = true;
    over_ranges(gradient.size(), pool, [&](std::size_t first, std::size_t count) {
      if (!states_.empty()) return sgd_momentum(range(first, count), state(0, first), sgd);
      for (std::size_t at = first; at < first + count; at += kFloatsInCache) {
        const std::size_t some = std::min(kFloatsInCache, first + count - at);
        if (!all_finite(gradient.subspan(at, some))) finite = false;
        sgd_plain(range(at, some), sgd);
      }
    });
    return finite;
  }
  const bool decoupled = options_.kind == Kind::adamw;
  const double correction1 = 1 - std::pow(options_.beta1, static_cast<double>(steps));
  const double correction2 = 1 - std::pow(options_.beta2, static_cast<double>(steps));
  const AdamStep constants{
      .beta1 = static_cast<float>(options_.beta1),
      .beta2 = static_cast<float>(options_.beta2),
      .epsilon = static_cast<float>(options_.epsilon),
      .scale = gradient_scale,
      .decay = decoupled ? 0.0f : static_cast<float>(options_.weight_decay),
      .shrink = decoupled ? static_cast<float>(1 - learning_rate * options_.weight_decay) : 1.0f,
      .step_size = static_cast<float>(learning_rate / correction1),
      .root_correction = static_cast<float>(std::sqrt(correction2))};
  over_ranges(gradient.size(), pool, [&](std::size_t first, std::size_t count) {
    adam(range(first, count), state(0, first), state(1, first), constants);
  });
  return true;
}

bool all_finite(std::span<const float> values) {
  // The exponent of NaN and infinity is all ones. Counting them keeps the loop free of branches.
  std::uint32_t bad = 0;
  for (const float value : values)
    bad |= (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  return bad == 0;
}

bool all_finite_in_parallel(std::span<const float> values, ThreadPool* pool) {
  std::atomic<bool> finite = true;
  over_ranges(values.size(), pool, [&](std::size_t first, std::size_t count) {
    if (!all_finite(values.subspan(first, count))) finite = false;
  });
  return finite;
}

double norm_of(std::span<const float> gradient, double scale, ThreadPool* pool) {
  std::vector<double> sums((gradient.size() + kFloatsPerTask - 1) / kFloatsPerTask);
  over_ranges(gradient.size(), pool, [&](std::size_t first, std::size_t count) {
    // Eight sums side by side: one alone would wait for itself at every addition.
    double lanes[8] = {};
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = static_cast<double>(gradient[first + i]);
      lanes[i % 8] += value * value;
    }
    sums[first / kFloatsPerTask] = std::accumulate(std::begin(lanes), std::end(lanes), 0.0);
  });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0)) * scale;
}

}  // namespace w5xde
