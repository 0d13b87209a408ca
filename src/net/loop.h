#pragma once

#include <cassert>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/clock.h"

namespace w5xde {

// Work that would take too long on a loop. What is given to one Background is done in that order, one piece
// at a time. Loop thread only.
class Background {
 public:
  using Task = std::function<void()>;

  // Finishes the work that it was given; tasks that were to follow it on the loop are dropped.
  virtual ~Background() = default;

  // Does the work beside the loop, then runs `then`, if there is one, on the loop.
  virtual void run(Task work, Task then = {}) = 0;
};

// The thread that owns connections: tasks and timers, one after the other. Everything that lives on a loop is
// touched from it alone, so none of it has a lock. AsioLoop is the real one; SimLoop has a clock of its own,
// for tests.
class Loop : public Clock {
 public:
  using Task = std::function<void()>;
  using TimerId = std::uint64_t;  // never 0

  // Runs the task soon, after the tasks posted before it. Any thread.
  virtual void post(Task task) = 0;

  // Runs the task once, that much later. Loop thread only.
  virtual TimerId after(Duration delay, Task task) = 0;
  // The task will not run; harmless when it has. Loop thread only.
  virtual void cancel(TimerId timer) = 0;

  // A thread beside this one, started when it is first used. Must not outlive the loop. Loop thread only.
  virtual std::unique_ptr<Background> background() = 0;

  // How long the longest task so far has taken: everything else waited for it. Zero where nobody measures.
  virtual Duration longest_task() const { return Duration::zero(); }

  // True on the loop's thread, and on any thread while the loop is not running.
  virtual bool on_loop() const = 0;
  void assert_on_loop() const { assert(on_loop()); }
};

}  // namespace w5xde
