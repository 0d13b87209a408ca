#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/bytes.h"
#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

// Samples that a node keeps, so that each crosses the link once. The coordinator decides what is kept, within
// the bytes that the node offered; a request beyond them is corrupt.
class SampleCache {
 public:
  explicit SampleCache(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Replaces a lease's sample numbers by the samples, in the slots' order; `payload` holds them afterwards.
  // Keeps the new samples that the lease says to keep.
  Status complete(Lease& lease, std::shared_ptr<AlignedBuffer>& payload, const Limits& limits);

  std::uint64_t bytes() const { return bytes_; }

 private:
  // Samples of one data set: training's, or evaluation's.
  struct CachedSet {
    // Of a sample in each of a lease's tensors; none while the set is empty.
    std::vector<std::uint64_t> sample_bytes;
    std::unordered_map<std::uint32_t, std::vector<std::byte>> samples;  // one's tensors after each other
  };

  Status keep(CachedSet& cached, std::uint32_t number, Bytes sample);

  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::array<CachedSet, 2> sets_;
};

}  // namespace w5xde
