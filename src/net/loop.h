#pragma once

#include <cassert>
#include <cstdint>
#include <functional>

#include "base/clock.h"

namespace w5xde {

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

  // True on the loop's thread, and on any thread while the loop is not running.
  virtual bool on_loop() const = 0;
  void assert_on_loop() const { assert(on_loop()); }
};

}  // namespace w5xde
