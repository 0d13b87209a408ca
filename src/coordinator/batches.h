#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "wire/tensor_list.h"

namespace w5xde {

// The samples of some slots in a row, laid out as a lease's payload has them.
struct Batch {
  TensorList tensors;  // inputs, targets
  std::vector<std::uint32_t> slot_samples;
  AlignedBuffer memory;
  std::uint64_t bytes = 0;

  Bytes payload() const { return {memory.data(), bytes}; }
};

// Assembles the samples of leases. They are assembled when a lease is made, and that is one lease ahead of
// the node's need.
class Batches {
 public:
  Batches(std::shared_ptr<const Dataset> dataset, const Sampler::Options& options)
      : dataset_(std::move(dataset)), sampler_(options) {}

  // Slots `first` … `first + count - 1`, counted from the run's first.
  std::shared_ptr<const Batch> make(std::uint64_t first, std::uint32_t count);

  const Dataset& dataset() const { return *dataset_; }
  const Sampler& sampler() const { return sampler_; }

 private:
  std::shared_ptr<Batch> take();

  std::shared_ptr<const Dataset> dataset_;
  Sampler sampler_;
  std::vector<std::shared_ptr<Batch>> made_;  // used again when nobody holds them
};

}  // namespace w5xde
