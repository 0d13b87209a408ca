// How large leases may be. A lease is one frame, and a node refuses a frame that is larger than its Limits.
#pragma once

#include <cstdint>

#include "base/limits.h"
#include "data/dataset.h"

namespace w5xde {

struct LeaseSize {
  // What a lease's samples may come to. Several leases wait in a node's queue at once, beside parameters.
  static constexpr std::uint64_t kPayloadBytesMax = Limits{}.send_queue_bytes_max / 8;
  static_assert(kPayloadBytesMax <= Limits{}.payload_bytes_max);

  std::uint64_t head_bytes_per_slot = 0;     // where samples have numbers
  std::uint64_t payload_bytes_per_slot = 0;  // as they travel at worst

  // Of slots of `batch` samples. `generic`: numbers travel as MessagePack.
  static LeaseSize of(const Dataset& data, std::uint32_t batch, bool generic);

  // A lease of one slot fits in a frame; with the numbers of its samples, too.
  bool fits() const { return payload_bytes_per_slot <= kPayloadBytesMax; }
  bool fits_with_numbers() const;
  // The most slots that a lease may have, a power of two; 1 at least.
  std::uint32_t slots_max(bool numbers) const;
};

// How many of the data's samples a slot may have for that, up to `wanted`; 1 at least.
std::uint32_t batch_that_fits(const Dataset& data, std::uint32_t wanted, bool generic);

}  // namespace w5xde
