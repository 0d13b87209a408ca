#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "net/loop.h"

namespace w5xde {

// A loop whose time is a number: a test of an hour's silence takes no time, and happens the same way each
// time.
class SimLoop final : public Loop {
 public:
  Instant now() const override { return now_; }
  void post(Task task) override { (void)after(Duration::zero(), std::move(task)); }
  TimerId after(Duration delay, Task task) override;
  void cancel(TimerId timer) override;
  // Its work is done from the loop, in no time.
  std::unique_ptr<Background> background() override;
  bool on_loop() const override { return true; }

  // Runs what is due within that time, in order of time and then of asking, and leaves the clock there.
  void run_for(Duration duration);
  // Runs what is due now, and what that asks for now.
  void run_ready() { run_for(Duration::zero()); }
  // Lets time pass without running anything, as when the process is stopped.
  void freeze_for(Duration duration) { now_ += duration; }

 private:
  using Key = std::pair<Instant, TimerId>;
  Instant now_ = Instant(std::chrono::hours(1));
  TimerId last_timer_ = 0;
  std::map<Key, Task> tasks_;
  std::map<TimerId, Instant> due_;
};

}  // namespace w5xde
