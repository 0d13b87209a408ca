#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "learn/learner.h"
#include "learn/step_in_progress.h"
#include "lease/round.h"
#include "net/loop.h"
#include "record/checkpoint.h"
#include "run/run_config.h"
#include "versions/broadcast.h"
#include "wire/messages.h"

namespace w5xde {

// Contributions become versions of the parameters: in sync along the tree of the step in progress, in async
// one after the other.
//
// Work on many floats is done beside the loop, one piece at a time. Until it is done the training is busy:
// the loop leaves versions, the optimizer, the sums of the step and the broadcast alone. Contributions may go
// on landing in their memory. Work on few floats is done at once, so that a small model does not pay for a
// change of threads. Loop thread only.
class Training {
 public:
  // A contribution with its floats.
  struct Arrived {
    NodeId node = 0;
    Contribution contribution;
    Reduction::Buffer values;
    bool finite = true;  // as far as it was looked at
  };
  class Host {
   public:
    virtual ~Host() = default;
    virtual bool running() const = 0;
    // It is known whether it is finite.
    virtual void checked(Arrived arrived) = 0;
    // A version further, by the step; and by this contribution (async).
    virtual void step_taken(const Sums& sums) = 0;
    virtual void applied(const Contribution& contribution) = 0;
    // More parts may be taken, now that others have had their turn on the loop.
    virtual void parts_due() = 0;
    // Work beside the loop is done, and what it led to.
    virtual void idle() = 0;
    virtual void failed(Error error) = 0;
    virtual void diverged_because(std::string_view how) = 0;
  };

  // More than `inline_floats` are worked on beside the loop.
  Training(Loop& loop, Host& host, const RunConfig& config, std::uint64_t inline_floats, ThreadPool* pool);
  ~Training() { loop_.cancel(parts_timer_); }
  Training(const Training&) = delete;
  Training& operator=(const Training&) = delete;

  // Goes on from a checkpoint; and with the steps of this round.
  // `shares_memory`: with nodes of this machine.
  Status resume(const CheckpointFile& from, std::uint64_t slots_per_epoch, bool shares_memory);
  Status begin_steps(const CheckpointInfo& from, Round& round);
  // sync: the step before the round's front is committed. Returns how the global batch grows by it, if it
  // does.
  std::optional<BatchGrowth> next_step(Round& round);
  // The learning rate follows the data. `slots_committed` is of the run.
  void set_pace(const Round& round, std::uint64_t slots_committed);

  bool busy() const { return busy_; }
  Learner& learner() { return *learner_; }
  const Learner& learner() const { return *learner_; }
  StepInProgress& step() { return step_; }
  const StepInProgress& step() const { return step_; }

  // Looks whether every float is finite. Large ones one after the other.
  void check(Arrived arrived);
  // sync: the first `landed` floats of a contribution are in `values`, the others follow. `awaited`: it would
  // count. False: it is of no use to the step.
  bool land(NodeId node, const Contribution& contribution, std::span<float> values, std::uint64_t landed,
            bool awaited);
  // It counts. In async it waits to be applied.
  void add(const Contribution& contribution, Reduction::Buffer values);

  // sync: every slot is in. The new version is shown to the nodes by `broadcast`.
  void take_step(Broadcast& broadcast);
  // sync: takes what is here of every slot, while contributions still arrive, but no more at once than the
  // larger of `part_floats` and `inline_floats`. True: there is more of the next version.
  bool take_part(std::uint64_t part_floats);

  // async: contributions that wait to be applied; and applies the oldest.
  std::size_t waiting() const { return waiting_.size(); }
  void apply_oldest();
  // async: so old that it is refused.
  bool too_stale(const Contribution& contribution) const;

  // Does `work` beside the loop, after all that it was given before.
  void run_beside(const std::function<void()>& work, const std::function<void()>& then) {
    background_->run(work, then);
  }
  // Finishes the work beside the loop. There is no more after it.
  void finish() { background_.reset(); }

 private:
  struct Waiting {
    Contribution contribution;
    Reduction::Buffer values;
  };

  void begin_step(const Round& round);
  void heavy(std::uint64_t floats, const std::function<void()>& work, const std::function<void()>& then);
  void go_on();

  Loop& loop_;
  Host& host_;
  const RunConfig& config_;
  const std::uint64_t inline_floats_;
  ThreadPool* pool_;
  std::unique_ptr<Learner> learner_;
  StepInProgress step_;            // sync: the front step
  bool schedule_by_slots_ = true;  // or by steps
  std::deque<Waiting> waiting_;
  bool busy_ = false;
  std::deque<Arrived> arrived_;  // while it is busy
  Loop::TimerId parts_timer_ = 0;
  std::unique_ptr<Background> background_;  // last: it must be gone before what it works with
};

}  // namespace w5xde
