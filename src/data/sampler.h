#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace w5xde {

// Which samples a slot has. Each epoch is a new shuffle of all samples, cut into batches; the last has the
// rest. A single sample that is left joins the slot before: BatchNorm cannot be trained on one. A function of
// the seed and the slot's number alone, so the number of the next slot is the whole cursor.
class Sampler {
 public:
  struct Options {
    std::uint64_t samples = 0;  // 1 … 2^32 - 1
    std::uint32_t batch = 1;    // from 1 on
    std::uint64_t seed = 0;
    bool shuffle = true;  // evaluation walks in order, and its last slot may have one sample
  };

  explicit Sampler(const Options& options);

  std::uint64_t slots_per_epoch() const;
  std::uint64_t epoch_of(std::uint64_t slot) const { return slot / slots_per_epoch(); }
  // The sample numbers of the slot with this number, counted from the run's first. Valid until the next call.
  std::span<const std::uint32_t> samples_of(std::uint64_t slot);
  // How many those are.
  std::uint32_t count_of(std::uint64_t slot) const;
  // How many samples slots 0 … slot - 1 have.
  std::uint64_t samples_before(std::uint64_t slot) const;

 private:
  const std::vector<std::uint32_t>& order_of(std::uint64_t epoch);
  bool is_last(std::uint64_t slot) const { return slot % slots_per_epoch() == slots_per_epoch() - 1; }

  Options options_;
  // A step may reach into the next epoch while leases of the last are made again; older ones are forgotten.
  std::map<std::uint64_t, std::vector<std::uint32_t>> orders_;
};

}  // namespace w5xde
