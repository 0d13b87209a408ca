// Simulated time, and the processes that live in it. One queue of events, in order of time and then of
// asking, drives every process of a pool in one thread: the same events in the same order, each time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/random.h"
#include "net/loop.h"

namespace w5xde {

class SimProcess;

class SimTime {
 public:
  using Task = std::function<void()>;
  using EventId = std::uint64_t;

  Instant now() const { return now_; }
  // `process` is whose event it is: none runs while it is frozen, and none after it is gone. Null: the
  // world's.
  EventId at(Instant time, SimProcess* process, Task task);
  void cancel(EventId event);
  void forget(const SimProcess* process);

  // Runs the next event. False: there is none.
  bool step();
  std::uint64_t events_run() const { return events_run_; }
  std::size_t events_waiting() const { return events_.size(); }

 private:
  struct Event {
    SimProcess* process = nullptr;
    Task task;
  };
  using Key = std::pair<Instant, EventId>;

  Instant now_ = Instant(std::chrono::hours(1));
  EventId last_event_ = 0;
  std::uint64_t events_run_ = 0;
  std::map<Key, Event> events_;
  std::map<EventId, Instant> due_;
};

// One process of the pool, as its loop. Destroying it is what kill -9 does.
class SimProcess final : public Loop {
 public:
  SimProcess(SimTime& time, std::string name, std::uint64_t seed)
      : time_(time), name_(std::move(name)), random_(seed) {}
  ~SimProcess() override { time_.forget(this); }
  SimProcess(const SimProcess&) = delete;
  SimProcess& operator=(const SimProcess&) = delete;

  // Loop
  Instant now() const override { return time_.now() + clock_offset_; }
  void post(Task task) override { (void)after(Duration::zero(), std::move(task)); }
  TimerId after(Duration delay, Task task) override;
  void cancel(TimerId timer) override { time_.cancel(timer); }
  std::unique_ptr<Background> background() override;
  bool on_loop() const override { return true; }

  const std::string& name() const { return name_; }
  SimTime& time() { return time_; }
  Random& random() { return random_; }

  // As by SIGSTOP: nothing of it runs before that time.
  void freeze_until(Instant time) { frozen_until_ = std::max(frozen_until_, time); }
  Instant frozen_until() const { return frozen_until_; }
  // Its clock leaps, as after a laptop's sleep.
  void jump(Duration by) { clock_offset_ += by; }

  // How long a piece of background work takes: asked when it is begun, and once more when it is done, which
  // may add to it. None: no time.
  std::function<Duration()> work_begins, work_done;

 private:
  SimTime& time_;
  std::string name_;
  Random random_;
  Instant frozen_until_{};
  Duration clock_offset_ = Duration::zero();
};

}  // namespace w5xde
