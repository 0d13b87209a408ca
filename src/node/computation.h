#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/slot_block.h"
#include "base/thread_annotations.h"
#include "base/thread_pool.h"
#include "learn/reduction.h"
#include "w5xde/engine.h"
#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

// The result of a lease.
struct Computed {
  Reduction::Buffer values;  // null for an evaluation
  Sums sums;
  std::uint64_t counted = 0, correct = 0;  // of an evaluation
  Duration busy = Duration::zero();
  std::uint32_t lanes = 1;  // that took part
};

// Cuts a lease into few blocks that lanes take in turn; no lane gets more than one slot more than another.
std::vector<SlotBlock> blocks_for_lanes(std::uint32_t slots, std::uint32_t lanes);

// Computes leases: slots added up along the step's tree, in one lane or several, each with an engine of its
// own; the bits are the same. One caller at a time.
class Computation {
 public:
  // Another engine of the same model, for another lane.
  using MakeEngine = std::function<Result<std::unique_ptr<Engine>>()>;

  // `clock` is read from the thread that computes.
  Computation(Engine& engine, const Clock& clock, MakeEngine another = {})
      : engines_{&engine},
        clock_(clock),
        another_(std::move(another)),
        floats_(engine.description().floats()) {}

  // `payload` holds the lease's tensors. The sum of a training lease is in `into` then, if that is there.
  Result<Computed> run(const Lease& lease, Bytes payload, std::span<const float> state,
                       std::uint32_t lanes = 1, Reduction::Buffer into = nullptr);

  // Does ahead what the first lease would wait for: the engines of `lanes`, and `buffers` sums whose memory
  // is touched. While it runs, it is the one caller.
  void prepare(std::uint32_t lanes, std::uint32_t buffers);

  // The memory of a contribution that is sent, to be used again.
  void give_back(Reduction::Buffer values);

 private:
  struct Sum {
    Reduction::Buffer values;
    Sums sums;
  };
  using Task = std::function<Status(Engine& engine, std::size_t number)>;

  Status train(std::span<const Slot> slots, std::span<const float> state, Reduction::Buffer into,
               Computed& computed);
  Status evaluate(std::span<const Slot> slots, std::span<const float> state, Computed& computed);
  Status open_lanes(std::uint32_t lanes);
  Status in_lanes(std::uint32_t lanes, std::size_t tasks, const Task& task);
  Result<Sum> add_up(Engine& engine, std::span<const Slot> slots, std::span<const float> state,
                     Reduction::Buffer into);
  Reduction::Buffer take_buffer();

  std::vector<Engine*> engines_;  // one a lane
  const Clock& clock_;
  std::vector<std::unique_ptr<Engine>> others_;
  MakeEngine another_;
  std::unique_ptr<ThreadPool> pool_;  // of the lanes but one, which is the caller's
  std::uint64_t floats_;
  Mutex mutex_;
  std::vector<Reduction::Buffer> spare_ W5XDE_GUARDED_BY(mutex_);
};

}  // namespace w5xde
