#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "learn/global_batch.h"
#include "learn/reduction.h"

namespace w5xde {

// The sync step that nodes compute just now: the sum of the contributions that are here, those that still
// land, and whether the step could still be left.
//
// Parts of it may be taken while the rest lands: what is here of every slot is stepped and on its way to the
// nodes, so both directions of a link are busy. The bits are the same: floats do not mix in a step (but in a
// norm, for clipping), and a contribution is the same whoever computes it.
class StepInProgress {
 public:
  explicit StepInProgress(ThreadPool* pool) : pool_(pool) {}

  // The global batch of this run grows.
  void set_growth(const GlobalBatch::Options& options, const BatchGrowthState& state) {
    global_batch_.emplace(options, state);
  }
  const GlobalBatch* global_batch() const { return global_batch_ ? &*global_batch_ : nullptr; }
  // The step is in; what it makes of later steps, if anything.
  std::optional<BatchGrowth> committed(std::uint64_t step) {
    return global_batch_ ? global_batch_->committed(step) : std::nullopt;
  }
  // The next one. Of a contribution's floats, the first `gradient_floats` are its gradient.
  void begin(std::uint32_t slots, std::uint64_t floats, std::uint64_t gradient_floats);

  // A node's contribution lands in `landing.values`, unless its slots land already.
  void begin_landing(std::uint64_t node, const Landing& landing);
  // False: it is of no use to this step.
  bool landed(std::uint64_t node, std::uint64_t floats);
  void forget_landing(std::uint64_t node) { landings_.erase(node); }
  std::size_t landings() const { return landings_.size(); }

  // All of a contribution is here. Buffers that are no longer needed are appended to `spare`.
  Status add(SlotBlock block, Reduction::Buffer values, const Sums& sums,
             std::vector<Reduction::Buffer>& spare) {
    return reduction_->add(block, std::move(values), sums, pool_, spare);
  }
  // Others' contributions to these slots are no longer waited for.
  void answered(SlotBlock block);
  Reduction::Buffer take(Sums& sums) { return reduction_->take(sums); }
  // Floats that were taken by parts.
  std::uint64_t taken() const { return reduction_->taken(); }

  Reduction::Part next_part() const { return reduction_->next_part(list_of_landings()); }
  std::span<const float> take_part(const Reduction::Part& part) {
    return reduction_->take_part(part, list_of_landings(), pool_);
  }

  // Some node may compute with the step's parameters.
  void set_out() { out_ = true; }
  bool is_out() const { return out_; }
  // A contribution that counts changed error feedback: a checkpoint of the version before would miss it.
  void feedback_changed() { feedback_changed_ = true; }
  bool has_changed_feedback() const { return feedback_changed_; }

 private:
  std::vector<Landing> list_of_landings() const;

  ThreadPool* pool_;
  std::optional<Reduction> reduction_;
  std::optional<GlobalBatch> global_batch_;
  std::map<std::uint64_t, Landing> landings_;  // by node, each in its session's memory
  bool out_ = false;
  bool feedback_changed_ = false;
};

}  // namespace w5xde
