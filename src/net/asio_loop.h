#pragma once

#include <functional>
#include <memory>

#include "net/loop.h"

namespace asio {
class io_context;
}

namespace w5xde {

// The loop of a real process.
class AsioLoop final : public Loop {
 public:
  AsioLoop();
  ~AsioLoop() override;
  AsioLoop(const AsioLoop&) = delete;
  AsioLoop& operator=(const AsioLoop&) = delete;

  Instant now() const override;
  void post(Task task) override;
  TimerId after(Duration delay, Task task) override;
  void cancel(TimerId timer) override;
  std::unique_ptr<Background> background() override;
  Duration longest_task() const override;
  bool on_loop() const override;

  // Runs until stop(), on the calling thread.
  void run();
  // Runs until the condition holds, looking at it after every task, or until stop(). While `eager` holds,
  // something is expected any moment, and the loop looks for it a little while before it sleeps: to be woken
  // up costs.
  void run_until(
      const std::function<bool()>& condition, const std::function<bool()>& eager = [] { return false; });
  // Any thread.
  void stop();

  asio::io_context& context();
  // Runs a task that asio has called for, and measures it. Loop thread only.
  void run_task(const Task& task);

 private:
  struct State;
  bool poll_for_a_while();
  std::unique_ptr<State> state_;
};

}  // namespace w5xde
