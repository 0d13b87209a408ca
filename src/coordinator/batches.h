#pragma once

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/thread_pool.h"
#include "coordinator/gathered_slots.h"
#include "coordinator/kept_samples.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "tensor/tensor_view.h"
#include "w5xde/engine.h"
#include "wire/tensor_list.h"

namespace w5xde {

// The samples of some slots in a row.
struct Batch {
  TensorList tensors;  // inputs, then targets
  std::vector<TensorView> payload;
  std::vector<std::uint32_t> slot_samples;
  std::vector<SampleNumber> numbers;   // none where the payload has all samples
  std::shared_ptr<const void> memory;  // where the payload is

  // As an engine takes them.
  SlotSamples samples() const;
};

// The samples of leases. A step's are put together before its first lease is made, off the loop's thread
// where they are many, and its leases look at parts of them: whatever is leased, and leased again, is copied
// once. Loop thread only.
class Batches {
 public:
  // `pool` may be null.
  Batches(std::shared_ptr<const Dataset> dataset, const Sampler::Options& options, ThreadPool* pool = nullptr)
      : dataset_(std::move(dataset)), options_(options), sampler_(options), pool_(pool) {}
  ~Batches();
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // Where the data set gathers slowly: beside this loop from now on. `gathered` is called when there is more
  // of what ready() was asked for.
  void gather_beside(Loop& loop, std::function<void()> gathered);
  // Whether these slots can be made at once, for a node with these samples where it is given. If not, their
  // samples are gathered, before those that nobody waits for.
  bool ready(std::uint64_t first, std::uint32_t count, Work work, const KeptSamples* kept);

  // Slots `first` … `first + count - 1`, counted from the run's first, will be wanted soon. A few such ranges
  // are kept, the latest; a range that is very large is not. If the data cannot be read, make() says so.
  void prepare(std::uint64_t first, std::uint32_t count);
  // These slots, prepared or not.
  Result<Batch> make(std::uint64_t first, std::uint32_t count);
  // These slots, with those of their samples that a node has not got.
  Result<Batch> make_lacking(std::uint64_t first, std::uint32_t count, Work work, KeptSamples& kept);

  struct NotFinite {
    std::uint32_t number = 0;  // of the sample
    bool is_target = false;
  };
  // The first sample of these slots with an f32 that is NaN or infinity, if there is one.
  Result<std::optional<NotFinite>> first_not_finite(std::uint64_t first, std::uint32_t count);

  const Dataset& dataset() const { return *dataset_; }
  const Sampler& sampler() const { return sampler_; }

 private:
  // Slots whose samples lie side by side: all of one input, then all of the next, then all targets.
  struct Stock {
    std::uint64_t first = 0, end = 0;  // slots
    std::uint64_t samples = 0;
    std::shared_ptr<AlignedBuffer> memory;
    std::shared_future<Status> filled;
  };

  Stock stock_of(std::uint64_t first, std::uint32_t count);
  Status fill(Stock& stock, ThreadPool* pool);
  // Of slots that were gathered beside the loop; none where some were not.
  std::optional<Result<Batch>> make_gathered(std::uint64_t first, std::uint32_t count);
  Status gather_lacking(std::uint64_t first, const Batch& batch, std::span<const MutableBytes> tensors);
  TensorList describe(std::uint64_t samples) const;
  std::shared_ptr<AlignedBuffer> take_memory();

  std::shared_ptr<const Dataset> dataset_;
  Sampler::Options options_;
  Sampler sampler_;
  ThreadPool* pool_;
  std::map<std::uint64_t, Stock> stocks_;             // prepared, by first slot
  std::vector<std::shared_ptr<AlignedBuffer>> made_;  // used again when nobody holds them
  std::unique_ptr<GatheredSlots> gathered_;           // where the data set gathers slowly
};

}  // namespace w5xde
