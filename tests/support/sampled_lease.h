#pragma once

#include <cstdint>
#include <vector>

#include "wire/messages.h"

namespace w5xde {

// A lease with its payload, as a coordinator would send it.
struct SampledLease {
  Lease lease;
  std::vector<std::byte> payload;
};

// Of these slots of a step: three features and a class a sample. A slot's samples, two to four of them,
// depend on the step and the slot alone, so that leases that overlap agree. Its seed is the step's, its
// version the step's number.
SampledLease sampled_lease(std::uint64_t step, SlotBlock block, Work work = Work::train);

}  // namespace w5xde
