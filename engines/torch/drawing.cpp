#include "drawing.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <cstring>
#include <mutex>
#include <shared_mutex>

#include "base/random.h"

namespace w5xde::torch_engine {

namespace {

// Held alone by a slot that draws, together by slots that are watched.
std::shared_mutex& generator_in_use() {
  static std::shared_mutex mutex;
  return mutex;
}

void seed_generator(std::uint64_t seed, at::Device device) {
  // The generator of CPUs looks at the low 32 bits only; after mixing, all of the seed is in them.
  const auto set = [mixed = mix(seed)](at::Generator generator) {
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(mixed);
  };
  set(at::globalContext().defaultGenerator(at::kCPU));
  if (!device.is_cpu()) set(at::globalContext().defaultGenerator(device));
}

}  // namespace

// Of the CPU's generator.
struct Drawing::GeneratorState {
  at::mt19937_data_pod engine;
  // A normal number is drawn in pairs: the second of a pair leaves the engine as it is.
  c10::optional<float> next_float;
  c10::optional<double> next_double;
};

Drawing::GeneratorState Drawing::generator_state() {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  auto* cpu = at::check_generator<at::CPUGeneratorImpl>(generator);
  return {cpu->engine().data(), cpu->next_float_normal_sample(), cpu->next_double_normal_sample()};
}

Drawing::Drawing(Draws draws, std::uint64_t seed, at::Device device) : draws_(draws) {
  if (draws_ == Draws::always) {
    generator_in_use().lock();
    seed_generator(seed, device);
  } else if (draws_ == Draws::unknown) {
    generator_in_use().lock_shared();
    before_ = std::make_unique<const GeneratorState>(generator_state());
  }
}

Drawing::~Drawing() {
  if (draws_ == Draws::always) {
    generator_in_use().unlock();
  } else if (draws_ == Draws::unknown) {
    generator_in_use().unlock_shared();
  }
}

bool Drawing::surprised() const {
  if (!before_) return false;
  const GeneratorState now = generator_state();
  const auto& engine = before_->engine;
  return now.engine.next_ != engine.next_ || now.engine.left_ != engine.left_ ||
         now.engine.state_ != engine.state_ || now.next_float != before_->next_float ||
         now.next_double != before_->next_double;
}

}  // namespace w5xde::torch_engine
