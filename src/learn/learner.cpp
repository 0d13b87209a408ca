#include "learn/learner.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/errors.h"
#include "base/hash.h"
#include "base/limits.h"
#include "learn/engine_library.h"

namespace w5xde {

bool all_finite(std::span<const float> values) {
  // The exponent of NaN and infinity is all ones. Counting them keeps the loop free of branches.
  std::uint32_t bad = 0;
  for (const float value : values)
    bad |= (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  return bad == 0;
}

Learner::Learner(std::shared_ptr<const BlockLayout> parameters, std::shared_ptr<const BlockLayout> buffers,
                 const Options& options, ThreadPool* pool)
    : parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      options_(options),
      pool_(pool),
      floats_(parameters_->floats() + buffers_->floats()),
      fingerprint_(fingerprint_of(ModelDescription{parameters_, buffers_})),
      state_(std::make_shared<AlignedBuffer>(floats_ * sizeof(float))),
      optimizer_(options.optimizer, parameters_) {
  std::memset(state_->data(), 0, floats_ * sizeof(float));
}

Result<std::unique_ptr<Learner>> Learner::from(const BlockSource& blocks, const Counts& counts,
                                               const Options& options, ThreadPool* pool) {
  auto parameters = blocks.layout_of("parameters");
  if (!parameters) return invalid("the checkpoint has no parameters");
  auto buffers = blocks.layout_of("buffers");
  if (!buffers) {
    W5XDE_TRY(buffers, BlockLayout::make({}, 0));
  }
  std::unique_ptr<Learner> learner(new Learner(std::move(parameters), std::move(buffers), options, pool));
  W5XDE_CHECK(learner->restore(blocks, counts));
  return learner;
}

Status Learner::restore(const BlockSource& blocks, const Counts& counts) {
  W5XDE_CHECK(blocks.read("parameters", *parameters_, values().first(parameters_->floats())));
  if (blocks.layout_of("buffers")) {
    W5XDE_CHECK(blocks.read("buffers", *buffers_, values().subspan(parameters_->floats())));
  }
  version_ = counts.version;
  std::vector<std::uint64_t> without_gradient;
  for (const auto& entry : parameters_->entries()) {
    const auto found = counts.steps_without_gradient.find(entry.name);
    without_gradient.push_back(found == counts.steps_without_gradient.end() ? 0 : found->second);
  }
  optimizer_.set_steps(counts.optimizer_steps, without_gradient);
  // Step 0 has none yet: an optimizer begins with zeros.
  if (counts.optimizer_steps == 0) return {};
  for (auto& state : optimizer_.states()) {
    if (Status read = blocks.read("optimizer." + state.name, *parameters_, state.block.values());
        !read.ok()) {
      return invalid("the checkpoint was made with another optimizer than {}: {}",
                     name_of(options_.optimizer.kind), read.error().message);
    }
  }
  return {};
}

double Learner::learning_rate() const {
  const Pace pace = pace_ ? *pace_ : Pace{.schedule_step = optimizer_.steps()};
  return options_.optimizer.learning_rate * options_.schedule.factor(pace.schedule_step) * pace.factor;
}

std::string Learner::parameters_hash() const {
  return hash128_hex(state_bytes());
}

Reduction::Buffer Learner::take_buffer() {
  if (spare_.empty()) return std::make_unique<AlignedBuffer>(floats_ * sizeof(float));
  Reduction::Buffer buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void Learner::give_back(Reduction::Buffer buffer) {
  if (buffer && spare_.size() < kSpareMax) spare_.push_back(std::move(buffer));
}

Learner::State Learner::free_memory() {
  if (!other_ || other_.use_count() > 1) other_ = std::make_shared<AlignedBuffer>(floats_ * sizeof(float));
  return std::move(other_);
}

// Of the floats from `first` on: parameters through the optimizer, buffers by the mean of what changed.
void Learner::step(const State& state, std::uint64_t first, std::span<const float> sum, double scale,
                   double mean) {
  const std::uint64_t parameters = parameters_->floats();
  const auto floats = floats_of(state).subspan(first, sum.size());
  const std::uint64_t of_parameters =
      std::min<std::uint64_t>(sum.size(), parameters - std::min(parameters, first));
  optimizer_.step_part(first, floats.first(of_parameters), sum.first(of_parameters),
                       static_cast<float>(scale), rate_, pool_);
  // In double: a counter that every slot raised by one must rise by one, not by a little less.
  for (std::size_t i = of_parameters; i < sum.size(); ++i)
    floats[i] += static_cast<float>(static_cast<double>(sum[i]) * mean);
}

bool Learner::apply_part(std::span<const float> sum, std::uint64_t samples) {
  if (!all_finite(sum)) return false;
  if (!next_) {
    next_ = free_memory();
    rate_ = learning_rate();
    optimizer_.begin_step();
  }
  std::ranges::copy(floats_of(state_).subspan(stepped_, sum.size()),
                    floats_of(next_).subspan(stepped_, sum.size()).begin());
  const double mean = 1 / static_cast<double>(samples);
  step(next_, stepped_, sum, mean, mean);
  stepped_ += sum.size();
  return true;
}

bool Learner::apply(const AlignedBuffer& sum, std::uint64_t samples, double weight) {
  const std::span<const float> all(reinterpret_cast<const float*>(sum.data()), floats_);
  if (next_) {
    if (!apply_part(all.subspan(stepped_), samples)) return false;
    other_ = std::exchange(state_, std::move(next_));
    next_ = nullptr;
    stepped_ = 0;
    ++version_;
    return true;
  }
  // Finite contributions may add up to what is not.
  if (!all_finite(all)) return false;
  const double mean = weight / static_cast<double>(samples);
  double scale = mean;
  if (options_.clip_norm > 0) {
    const double norm = norm_of(all.first(parameters_->floats()), scale, pool_);
    if (!std::isfinite(norm)) return false;
    if (norm > options_.clip_norm) scale *= options_.clip_norm / (norm + 1e-6);
  }
  // A frame that is not written yet must go on showing the old version.
  if (state_.use_count() > 1) {
    State copy = free_memory();
    std::memcpy(copy->data(), state_->data(), floats_ * sizeof(float));
    other_ = std::exchange(state_, std::move(copy));
  }
  rate_ = learning_rate();
  optimizer_.begin_step();
  step(state_, 0, all, scale, mean);
  ++version_;
  return true;
}

std::map<std::string, std::uint64_t> Learner::steps_without_gradient() const {
  std::map<std::string, std::uint64_t> counts;
  const auto steps = optimizer_.steps_without_gradient();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] > 0) counts[parameters_->entries()[i].name] = steps[i];
  }
  return counts;
}

std::vector<NamedBlock> Learner::blocks() const {
  const std::span<const float> all(reinterpret_cast<const float*>(state_->data()), floats_);
  std::vector<NamedBlock> blocks = {{"parameters", parameters_.get(), all.first(parameters_->floats())}};
  if (buffers_->floats() > 0) {
    blocks.push_back({"buffers", buffers_.get(), all.subspan(parameters_->floats())});
  }
  for (const auto& state : optimizer_.states()) {
    blocks.push_back({"optimizer." + state.name, parameters_.get(), state.block.values()});
  }
  return blocks;
}

}  // namespace w5xde
