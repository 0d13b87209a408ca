#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "learn/optimizer.h"
#include "learn/reduction.h"
#include "learn/schedule.h"
#include "tensor/parameter_block.h"
#include "w5xde/result.h"

namespace w5xde {

// The model as the coordinator has it: its floats, and what turns contributions into their next version. The
// checkpoint of step 0 says what the model looks like.
class Learner {
 public:
  struct Options {
    OptimizerOptions optimizer;
    Schedule schedule;
    double clip_norm = 0;
    bool shares_memory = false;  // with nodes of this machine: versions and contributions are shared blocks
  };
  // A version of the floats: parameters, then buffers. Frames that carry it to slow nodes hold on to it.
  using State = std::shared_ptr<AlignedBuffer>;

  // What a checkpoint says beside its blocks.
  struct Counts {
    std::uint64_t version = 0;
    std::uint64_t optimizer_steps = 0;
    std::map<std::string, std::uint64_t> steps_without_gradient;  // by tensor
  };
  static Result<std::unique_ptr<Learner>> from(const BlockSource& blocks, const Counts& counts,
                                               const Options& options, ThreadPool* pool);

  std::uint64_t floats() const { return floats_; }
  const std::shared_ptr<const BlockLayout>& parameters() const { return parameters_; }
  std::uint64_t version() const { return version_; }
  const State& state() const { return state_; }
  // Nodes of this machine may read the version at hand. Asked while a step is taken beside the loop, too.
  bool state_is_shared() const { return state_is_shared_; }
  Bytes state_bytes() const { return {state_->data(), floats_ * sizeof(float)}; }
  std::uint64_t model_fingerprint() const { return fingerprint_; }
  // Of the next version.
  double learning_rate() const;
  // Where the schedule is and the rate's factor; needed where steps differ in size.
  struct Pace {
    std::uint64_t schedule_step = 0;
    double factor = 1;
  };
  void set_pace(const Pace& pace) { pace_ = pace; }
  std::string parameters_hash() const;

  // Memory for a contribution to land in.
  Reduction::Buffer take_buffer();
  void give_back(Reduction::Buffer buffer);
  // More spare memory than this many contributions is given back to the machine.
  static constexpr std::size_t kSpareMax = 32;
  std::vector<Reduction::Buffer>& spare() { return spare_; }

  // One version further: the sum of contributions, divided by its samples and weighted. The version at hand
  // stays as it is: the next one has memory of its own. False, and nothing changes (but by parts that were
  // applied before), when the sum is not finite.
  bool apply(const AlignedBuffer& sum, std::uint64_t samples, double weight);

  // The same, part by part (not with a clip_norm, which needs the whole gradient): the sum's floats from
  // stepped() on, until apply() takes the rest. No checkpoint meanwhile: optimizer states are half stepped.
  bool apply_part(std::span<const float> sum, std::uint64_t samples);
  std::uint64_t stepped() const { return stepped_; }  // floats of the next version that are there
  const State& next() const { return next_; }         // null while there are none

  // All that a checkpoint has of it. Valid until the next apply() or apply_part().
  std::vector<NamedBlock> blocks() const;
  std::uint64_t optimizer_steps() const { return optimizer_.steps(); }
  std::map<std::string, std::uint64_t> steps_without_gradient() const;

 private:
  Learner(std::shared_ptr<const BlockLayout> parameters, std::shared_ptr<const BlockLayout> buffers,
          const Options& options, ThreadPool* pool);
  Status restore(const BlockSource& blocks, const Counts& counts);
  std::span<float> floats_of(const State& state) {
    return {reinterpret_cast<float*>(state->data()), floats_};
  }
  std::span<float> values() { return floats_of(state_); }
  AlignedBuffer new_memory() const;
  // Memory that no frame holds.
  State free_memory();
  bool begin_step(double mean, std::span<const float> all);
  bool step(std::span<const float> sum, double mean);

  std::shared_ptr<const BlockLayout> parameters_;
  std::shared_ptr<const BlockLayout> buffers_;
  Options options_;
  ThreadPool* pool_;
  std::uint64_t floats_;
  std::uint64_t fingerprint_;
  std::atomic<std::uint64_t> version_ = 0;  // a status may be asked for while a step is taken beside the loop
  std::optional<Pace> pace_;
  State state_;
  std::atomic<bool> state_is_shared_ = false;
  State other_;  // the version before, to be written over when nobody holds it
  State next_;
  std::uint64_t stepped_ = 0;
  // Of the step that is taken.
  double rate_ = 0;
  double gradient_scale_ = 0;
  mutable Optimizer optimizer_;
  std::vector<Reduction::Buffer> spare_;
};

}  // namespace w5xde
