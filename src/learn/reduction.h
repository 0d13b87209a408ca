// The sum of a step, always in the same order.
//
// A step has slots 0 … n-1. They are the leaves of a binary tree: an aligned block (2^k slots from a multiple
// of 2^k on) lies under one node of it. The value of a node is the sum of its children's; a child without
// slots (past n) adds nothing. The root is the step's sum.
//
// Floating-point addition is not associative. The tree depends on slot numbers alone: who computed a block,
// in what order blocks arrive, and how large they are change no bit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/slot_block.h"
#include "base/thread_pool.h"
#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace w5xde {

// What travels up the tree is floats (gradient and buffer changes in one flat span), and Sums beside them.

// left += right.
void add_floats(std::span<float> left, std::span<const float> right, ThreadPool* pool);

// The sum of one of the two halves that a step's tree has below its root.
struct HalfSum {
  std::span<const float> values;
  Sums sums;
};
// Called just before the halves are added up; never for a step of one slot, or one that came as one block.
using WatchHalves = std::function<void(const HalfSum& left, const HalfSum& right)>;

// A block that still arrives: its first `landed` floats are here.
struct Landing {
  SlotBlock block;
  std::span<float> values;  // memory for all of them
  std::uint64_t landed = 0;
  std::uint64_t samples = 0;
};

// Adds up the blocks of one step as they come, in the buffers that they came in. take_part() gives the sum of
// the first floats of every slot while the rest still arrives.
class Reduction {
 public:
  using Buffer = std::unique_ptr<AlignedBuffer>;

  Reduction(std::uint32_t slots, std::uint64_t floats, WatchHalves watch = {})
      : slots_(slots), floats_(floats), watch_(std::move(watch)) {}

  // A block's sum, in a buffer of `floats` floats. Each slot may come once; `invalid` when one comes again,
  // lies past the step, or the block is none. Buffers that are no longer needed are appended to `spare`.
  Status add(SlotBlock block, Buffer values, const Sums& sums, ThreadPool* pool, std::vector<Buffer>& spare);

  bool complete() const;
  // The step's sum; complete() only. Floats that were taken before are of no use in it. Empty afterwards.
  Buffer take(Sums& sums);

  // What is here of every slot beyond what was taken, with blocks that still arrive; no two blocks overlap.
  struct Part {
    std::uint64_t first = 0, last = 0;  // floats
    std::uint64_t samples = 0;          // of the whole step
    bool empty() const { return first == last; }
  };
  Part next_part(std::span<const Landing> landing) const;
  // Its sum, in the memory of one of the blocks.
  std::span<const float> take_part(const Part& part, std::span<const Landing> landing, ThreadPool* pool);
  std::uint64_t taken() const { return taken_; }

  // How many blocks wait for their other half: bounds the memory of a step.
  std::size_t pending() const { return pending_.size(); }

 private:
  struct Pending {
    Buffer values;
    Sums sums;
  };

  using Blocks = std::map<SlotBlock, std::span<float>>;
  std::span<float> sum_below(SlotBlock block, const Blocks& blocks, ThreadPool* pool) const;

  // No two of these overlap, and no two are the halves of one block.
  std::map<SlotBlock, Pending> pending_;
  std::uint64_t taken_ = 0;  // floats, from the first on
  std::uint32_t slots_;
  std::uint64_t floats_;
  WatchHalves watch_;
};

}  // namespace w5xde
