#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/batches.h"
#include "coordinator/lease_size.h"
#include "lease/round.h"
#include "run/run_config.h"

namespace w5xde {

// The samples that leases carry, of training and of evaluation: how many fit, and which of them a node has
// cached already. Loop thread only.
class LeaseSamples {
 public:
  // Where samples are gathered that take long.
  struct Beside {
    Loop& loop;
    ThreadPool* pool;                // may be null
    std::function<void()> gathered;  // called when there is more of what ready() was asked for
  };
  // `evaluation` may be null. invalid when a single slot is larger than a node is sent at once.
  static Result<std::unique_ptr<LeaseSamples>> make(const RunConfig& config,
                                                    const std::shared_ptr<const Dataset>& training,
                                                    std::shared_ptr<const Dataset> evaluation,
                                                    const Beside& beside);

  const Sampler& sampler() const { return training_.sampler(); }
  std::uint32_t evaluation_slots() const;  // 0: there are none
  bool evaluates_sequences() const { return evaluation_ && is_sequence(evaluation_->dataset().targets()); }
  // The most slots that a lease may have.
  std::uint32_t slots_max(Work work) const;
  // Samples travel to such a node once, and by number afterwards. A rate of 0 is not measured.
  bool uses_cache(bool local, double bytes_per_second) const;
  std::uint64_t bytes() const;  // of all training samples

  // invalid, with its number, when a training sample of these slots has NaN or infinity. Reads them.
  Status check_finite(const StepSlots& steps, std::uint64_t step, SlotBlock block);

  // Whether the lease can be made now; if not, what it lacks is gathered beside the loop. `kept`: of a node
  // that caches samples.
  bool ready(const Grant& grant, const StepSlots& steps, const KeptSamples* kept);
  // An error is the data's: it cannot be read.
  Result<Batch> make_batch(const Grant& grant, const StepSlots& steps);
  Result<Batch> make_lacking(const Grant& grant, const StepSlots& steps, KeptSamples& kept);

 private:
  LeaseSamples(const RunConfig& config, const std::shared_ptr<const Dataset>& training, ThreadPool* pool);
  Status check(const RunConfig& config) const;
  bool may_use_cache() const {
    return transport_.sample_cache != SampleCaching::off && size_.fits_with_numbers();
  }
  void prepare_after(const Grant& grant, const StepSlots& steps);
  Batches& batches_of(Work work) { return work == Work::train ? training_ : *evaluation_; }
  const Dataset& data_of(Work work) const {
    return (work == Work::train ? training_ : *evaluation_).dataset();
  }

  const Transport transport_;
  const std::string name_;  // of the training data
  Batches training_;
  LeaseSize size_;
  std::optional<Batches> evaluation_;
  LeaseSize evaluation_size_;
};

}  // namespace w5xde
