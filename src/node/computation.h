#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "learn/engine.h"
#include "learn/reduction.h"
#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

// What a lease came to.
struct Computed {
  Reduction::Buffer values;  // null for an evaluation
  Sums sums;
  std::uint64_t correct = 0;
  Duration busy = Duration::zero();
};

// Computes leases with an engine: slot by slot, added up along the step's tree. One thread at a time.
class Computation {
 public:
  explicit Computation(Engine& engine) : engine_(engine), floats_(engine.description().floats()) {}

  // `payload` holds the lease's tensors.
  Result<Computed> run(const Lease& lease, Bytes payload, std::span<const float> state);

  // The memory of a contribution that is sent, to be used again.
  void give_back(Reduction::Buffer values) { spare_.push_back(std::move(values)); }

 private:
  Status train(std::span<const Slot> slots, std::span<const float> state, Computed& computed);
  Status evaluate(std::span<const Slot> slots, std::span<const float> state, Computed& computed);
  Reduction::Buffer take_buffer();

  Engine& engine_;
  std::uint64_t floats_;
  std::vector<Reduction::Buffer> spare_;
};

}  // namespace w5xde
