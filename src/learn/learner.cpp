#include "learn/learner.h"

#include <cmath>
#include <cstring>

#include "base/errors.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/shared_memory.h"
#include "learn/engine_library.h"

namespace w5xde {

Learner::Learner(std::shared_ptr<const BlockLayout> parameters, std::shared_ptr<const BlockLayout> buffers,
                 const Options& options, ThreadPool* pool)
    : parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      options_(options),
      pool_(pool),
      floats_(parameters_->floats() + buffers_->floats()),
      fingerprint_(fingerprint_of(ModelDescription{parameters_, buffers_})),
      state_(std::make_shared<AlignedBuffer>(new_memory())),
      optimizer_(options.optimizer, parameters_) {
  std::memset(state_->data(), 0, floats_ * sizeof(float));
  state_is_shared_ = state_->shared() != nullptr;
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
  if (spare_.empty()) return std::make_unique<AlignedBuffer>(new_memory());
  Reduction::Buffer buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

void Learner::give_back(Reduction::Buffer buffer) {
  if (buffer && spare_.size() < kSpareMax) spare_.push_back(std::move(buffer));
}

AlignedBuffer Learner::new_memory() const {
  const std::uint64_t bytes = floats_ * sizeof(float);
  return options_.shares_memory ? make_shared_buffer(bytes) : AlignedBuffer(bytes);
}

Learner::State Learner::free_memory() {
  if (!other_ || other_.use_count() > 1) other_ = std::make_shared<AlignedBuffer>(new_memory());
  return std::move(other_);
}

// False: the gradient is not finite, and no step is begun.
bool Learner::begin_step(double mean, std::span<const float> all) {
  gradient_scale_ = mean;
  if (options_.clip_norm > 0) {
    const double norm = norm_of(all.first(parameters_->floats()), mean, pool_);
    if (!std::isfinite(norm)) return false;
    if (norm > options_.clip_norm) gradient_scale_ *= options_.clip_norm / (norm + 1e-6);
  }
  next_ = free_memory();
  rate_ = learning_rate();
  optimizer_.begin_step();
  return true;
}

// The next version's floats that come now: parameters through the optimizer, buffers by the mean of what
// changed.
bool Learner::step(std::span<const float> sum, double mean) {
  const std::uint64_t first = stepped_, parameters = parameters_->floats();
  const auto before = floats_of(state_).subspan(first, sum.size());
  const auto after = floats_of(next_).subspan(first, sum.size());
  const std::uint64_t of_parameters =
      std::min<std::uint64_t>(sum.size(), parameters - std::min(parameters, first));
  if (!all_finite(sum.subspan(of_parameters)) ||
      !optimizer_.step_part(first, {before.first(of_parameters), after.first(of_parameters)},
                            sum.first(of_parameters), static_cast<float>(gradient_scale_), rate_, pool_)) {
    if (first > 0) return false;
    optimizer_.cancel_step();
    other_ = std::exchange(next_, nullptr);
    return false;
  }
  // In double: a counter that every slot raised by one must rise by one, not by a little less.
  for (std::size_t i = of_parameters; i < sum.size(); ++i)
    after[i] = before[i] + static_cast<float>(static_cast<double>(sum[i]) * mean);
  stepped_ += sum.size();
  return true;
}

bool Learner::apply_part(std::span<const float> sum, std::uint64_t samples) {
  const double mean = 1 / static_cast<double>(samples);
  return (next_ || begin_step(mean, {})) && step(sum, mean);
}

bool Learner::apply(const AlignedBuffer& sum, std::uint64_t samples, double weight) {
  const std::span<const float> all(reinterpret_cast<const float*>(sum.data()), floats_);
  const double mean = weight / static_cast<double>(samples);
  if (!next_ && !begin_step(mean, all)) return false;
  if (!step(all.subspan(stepped_), mean)) return false;
  other_ = std::exchange(state_, std::exchange(next_, nullptr));
  state_is_shared_ = state_->shared() != nullptr;
  stepped_ = 0;
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
