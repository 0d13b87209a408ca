// The sum of a step, always in the same order.
//
// A step has slots 0 … n-1. They are the leaves of a binary tree: the slots of an aligned block (2^k slots
// from a multiple of 2^k on) lie under one node of it, the block's two halves under that node's two children.
// The value of a node is the sum of its children's; a child without slots (past n) adds nothing. The root is
// the step's sum.
//
// Floating-point addition is not associative, so a sum depends on its tree. Here the tree depends on slot
// numbers alone: who computed a block, in what order blocks arrive, and how large they are change no bit.
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
#include "w5xde/result.h"

namespace w5xde {

// What travels up the tree: floats (gradient and buffer changes in one flat span), and exact counts beside
// them.
struct Sums {
  double loss = 0;
  std::uint64_t samples = 0;
};

// left += right, for everything that is summed.
void add_floats(std::span<float> left, std::span<const float> right, ThreadPool* pool);
Sums add(const Sums& left, const Sums& right);

// The sum of one of the two halves that a step's tree has below its root.
struct HalfSum {
  std::span<const float> values;
  Sums sums;
};
// Looks at the halves just before they are added up. A step of one slot has none, nor has one that came as
// one block.
using WatchHalves = std::function<void(const HalfSum& left, const HalfSum& right)>;

// A block that still arrives: its first `landed` floats are here.
struct Landing {
  SlotBlock block;
  std::span<float> values;  // memory for all of them
  std::uint64_t landed = 0;
  std::uint64_t samples = 0;
};

// Adds up the blocks of one step as they come. Buffers are handed over and handed back; none is allocated or
// copied.
//
// Floats do not mix, so that a part of them may be added up before the rest is there: take_part() gives the
// sum of what is here of every slot, from the first float on.
class Reduction {
 public:
  using Buffer = std::unique_ptr<AlignedBuffer>;

  Reduction(std::uint32_t slots, std::uint64_t floats, WatchHalves watch = {})
      : slots_(slots), floats_(floats), watch_(std::move(watch)) {}

  // A block's sum, in a buffer of `floats` floats. Each slot may come once; `invalid` when one comes again,
  // lies past the step, or the block is none. Buffers that are no longer needed are appended to `spare`.
  Status add(SlotBlock block, Buffer values, const Sums& sums, ThreadPool* pool, std::vector<Buffer>& spare);

  bool complete() const;
  // The step's sum; complete() only. Floats that were taken before are of no use in it. The reduction is
  // empty afterwards and may be used for the next step.
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
