// The samples of slots whose data set gathers slowly: pictures are decoded. They are gathered beside the
// loop, on a thread of their own that the pool helps: slots that a lease waits for come first, then those
// that are wanted next.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/thread_pool.h"
#include "data/dataset.h"
#include "data/sampler.h"
#include "net/loop.h"

namespace w5xde {

// Loop thread only.
class GatheredSlots {
 public:
  // What is kept at most, beside slots that leases wait for.
  static constexpr std::uint64_t kBytesMax = 256 * kMiB;
  static constexpr std::uint64_t kSlotsMax = 1024;

  struct Slot {
    std::vector<std::vector<std::byte>> tensors;  // of each input, then the targets
    Status status;                                // an error is the data's
  };

  // `gathered` is called when a slot is here. `pool` may be null.
  GatheredSlots(std::shared_ptr<const Dataset> dataset, const Sampler::Options& options, Loop& loop,
                ThreadPool* pool, std::function<void()> gathered);

  // Whether the slot's samples are here. If not, they are what is gathered next, and stay until take().
  bool want(std::uint64_t slot);
  // Slots `first` … `end - 1` will be wanted soon: gathers as many of them as half of the budget allows.
  void prepare(std::uint64_t first, std::uint64_t end);
  // Null where they are not here. The lease that wanted them has them now, or can do without.
  std::shared_ptr<const Slot> take(std::uint64_t slot);

  std::uint64_t bytes() const { return bytes_; }

 private:
  enum class Stage { queued, gathering, here };
  struct Entry {
    std::shared_ptr<Slot> slot;
    std::vector<std::uint32_t> numbers;
    std::uint64_t bytes = 0;
    std::uint64_t touched = 0;
    Stage stage = Stage::queued;
    bool wanted = false;
  };

  Entry& touch(std::uint64_t slot);
  void gather_next();
  void make_room();

  std::shared_ptr<const Dataset> dataset_;
  Sampler sampler_;
  ThreadPool* pool_;
  std::function<void()> gathered_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t bytes_ = 0;
  std::uint64_t touches_ = 0;
  bool gathering_ = false;
  std::unique_ptr<Background> background_;  // last: what it does ends before the rest is gone
};

}  // namespace w5xde
