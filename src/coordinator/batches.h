#pragma once

#include <array>
#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/thread_pool.h"
#include "coordinator/kept_samples.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "tensor/tensor_view.h"
#include "w5xde/engine.h"
#include "wire/tensor_list.h"

namespace w5xde {

// The samples of some slots in a row.
struct Batch {
  TensorList tensors;  // inputs, targets
  std::array<TensorView, 2> payload;
  std::vector<std::uint32_t> slot_samples;
  std::vector<SampleNumber> numbers;   // none where the payload has all samples
  std::shared_ptr<const void> memory;  // where the payload is

  // As an engine takes them.
  SlotSamples samples() const {
    return {{payload[0].bytes(), payload[0].dtype(), payload[0].shape()},
            {payload[1].bytes(), payload[1].dtype(), payload[1].shape()}};
  }
};

// The samples of leases. A step's are put together before its first lease is made, off the loop's thread
// where they are many, and its leases look at parts of them: whatever is leased, and leased again, is copied
// once. Loop thread only.
class Batches {
 public:
  // `pool` may be null.
  Batches(std::shared_ptr<const Dataset> dataset, const Sampler::Options& options, ThreadPool* pool = nullptr)
      : dataset_(std::move(dataset)), sampler_(options), pool_(pool) {}
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // Slots `first` … `first + count - 1`, counted from the run's first, will be wanted soon. A few such ranges
  // are kept, the latest; a range that is very large is not.
  void prepare(std::uint64_t first, std::uint32_t count);
  // These slots, prepared or not.
  Batch make(std::uint64_t first, std::uint32_t count);
  // These slots, with those of their samples that a node has not got.
  Batch make_lacking(std::uint64_t first, std::uint32_t count, Work work, KeptSamples& kept);

  struct NotFinite {
    std::uint32_t number = 0;  // of the sample
    bool is_target = false;
  };
  // The first sample of these slots with an f32 that is NaN or infinity, if there is one.
  std::optional<NotFinite> first_not_finite(std::uint64_t first, std::uint32_t count);

  const Dataset& dataset() const { return *dataset_; }
  const Sampler& sampler() const { return sampler_; }

 private:
  // Slots whose samples lie side by side: all inputs, then all targets.
  struct Stock {
    std::uint64_t first = 0, end = 0;  // slots
    std::uint64_t samples = 0;
    std::shared_ptr<AlignedBuffer> memory;
    std::shared_future<void> filled;
  };

  Stock stock_of(std::uint64_t first, std::uint32_t count);
  void fill(Stock& stock, ThreadPool* pool);
  std::uint64_t targets_at(std::uint64_t samples) const;
  std::shared_ptr<AlignedBuffer> take_memory();

  std::shared_ptr<const Dataset> dataset_;
  Sampler sampler_;
  ThreadPool* pool_;
  std::map<std::uint64_t, Stock> stocks_;             // prepared, by first slot
  std::vector<std::shared_ptr<AlignedBuffer>> made_;  // used again when nobody holds them
};

}  // namespace w5xde
