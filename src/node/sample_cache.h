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

// Samples that a node has been sent and keeps, so that each crosses the link once. What is kept is the
// coordinator's decision, within the bytes that the node has told it; one that goes beyond is corrupt.
class SampleCache {
 public:
  explicit SampleCache(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // Makes a lease with numbers one without: all its samples are in the tensors then, in the slots' order, and
  // `payload` holds them. Those that are to be kept are.
  Status complete(Lease& lease, std::shared_ptr<AlignedBuffer>& payload, const Limits& limits);

  std::uint64_t bytes() const { return bytes_; }

 private:
  // Samples of one data set: training's, or evaluation's.
  struct Shelf {
    std::array<std::uint64_t, 2> sample_bytes{};  // of an input, of a target; 0, 0 while it is empty
    std::unordered_map<std::uint32_t, std::vector<std::byte>> samples;
  };

  Status keep(Shelf& shelf, std::uint32_t number, Bytes input, Bytes target);

  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::array<Shelf, 2> shelves_;
};

}  // namespace w5xde
