#include "net/asio_loop.h"

#include <sched.h>

#include <algorithm>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/thread_pool.h"

namespace w5xde {

struct AsioLoop::State {
  // One thread runs it, so asio may leave its own locks out on that path.
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  std::unordered_map<TimerId, asio::steady_timer> timers;
  TimerId last_timer = 0;
  std::atomic<std::thread::id> thread;
  Duration longest_task = Duration::zero();
};

namespace {

constexpr auto kEagerFor = std::chrono::microseconds(200);

// Remembers which thread runs the loop, for as long as it does.
class Running {
 public:
  explicit Running(std::atomic<std::thread::id>& thread) : thread_(thread) {
    thread_ = std::this_thread::get_id();
  }
  ~Running() { thread_ = std::thread::id(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<std::thread::id>& thread_;
};

// A thread of its own.
class ThreadBackground final : public Background {
 public:
  explicit ThreadBackground(Loop& loop) : loop_(loop) {}

  void run(Task work, Task then) override {
    if (!thread_) thread_.emplace(1);
    thread_->submit(
        [&loop = loop_, work = std::move(work), then = std::move(then), alive = std::weak_ptr(alive_)] {
          work();
          if (!then) return;
          loop.post([then, alive] {
            if (!alive.expired()) then();
          });
        });
  }

 private:
  Loop& loop_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();  // gone: what would follow on the loop is dropped
  std::optional<ThreadPool> thread_;                      // last: it ends before what it uses
};

}  // namespace

AsioLoop::AsioLoop() : state_(std::make_unique<State>()) {}
AsioLoop::~AsioLoop() = default;

Instant AsioLoop::now() const {
  return std::chrono::steady_clock::now();
}

void AsioLoop::post(Task task) {
  asio::post(state_->context, [this, task = std::move(task)] { run_task(task); });
}

void AsioLoop::run_task(const Task& task) {
  const Instant begun = now();
  task();
  state_->longest_task = std::max(state_->longest_task, now() - begun);
}

Duration AsioLoop::longest_task() const {
  return state_->longest_task;
}

Loop::TimerId AsioLoop::after(Duration delay, Task task) {
  assert_on_loop();
  const TimerId id = ++state_->last_timer;
  auto& timer = state_->timers.emplace(id, asio::steady_timer(state_->context, delay)).first->second;
  timer.async_wait([this, id, task = std::move(task)](const asio::error_code&) {
    // A cancelled timer is gone from the map; the code alone would miss one that had already fired.
    if (state_->timers.erase(id) != 0) run_task(task);
  });
  return id;
}

void AsioLoop::cancel(TimerId timer) {
  assert_on_loop();
  state_->timers.erase(timer);
}

std::unique_ptr<Background> AsioLoop::background() {
  return std::make_unique<ThreadBackground>(*this);
}

bool AsioLoop::on_loop() const {
  const std::thread::id running = state_->thread;
  return running == std::thread::id() || running == std::this_thread::get_id();
}

void AsioLoop::run() {
  const Running running(state_->thread);
  state_->context.restart();
  state_->context.run();
}

void AsioLoop::run_until(const std::function<bool()>& condition, const std::function<bool()>& eager) {
  const Running running(state_->thread);
  state_->context.restart();
  while (!condition() && !state_->context.stopped()) {
    if (!eager() || !poll_for_a_while()) state_->context.run_one();
  }
}

// True when a task came and was run. Other threads may have the core in between.
bool AsioLoop::poll_for_a_while() {
  const Instant until = now() + kEagerFor;
  while (state_->context.poll_one() == 0) {
    if (now() >= until) return false;
    sched_yield();
  }
  return true;
}

void AsioLoop::stop() {
  state_->context.stop();
}

asio::io_context& AsioLoop::context() {
  return state_->context;
}

}  // namespace w5xde
