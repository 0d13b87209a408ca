#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

namespace w5xde {

namespace {

// One for_each in flight. Pool tasks may start after the caller returned, so they share ownership, and touch
// `body` only after they took an index.
struct Sweep {
  Sweep(std::size_t count_of, const std::function<void(std::size_t)>& body_of)
      : count(count_of), body(body_of) {}

  // noexcept: unwinding the caller would take `body` away from the pool threads that are still in it.
  void take_part() noexcept {
    for (std::size_t index = next.fetch_add(1); index < count; index = next.fetch_add(1)) {
      body(index);
      if (finished.fetch_add(1) + 1 == count) finished.notify_all();
    }
  }

  void wait() {
    for (std::size_t seen = finished.load(); seen != count; seen = finished.load()) finished.wait(seen);
  }

  const std::size_t count;
  const std::function<void(std::size_t)>& body;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> finished = 0;
};

}  // namespace

ThreadPool::ThreadPool(std::size_t threads) {
  threads_.reserve(threads);
  for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
}

ThreadPool::~ThreadPool() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadPool::submit(std::function<void()> task) {
  if (threads_.empty()) return task();
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

void ThreadPool::for_each(std::size_t count, const std::function<void(std::size_t)>& body) {
  if (count == 0) return;
  auto sweep = std::make_shared<Sweep>(count, body);
  const std::size_t helpers = std::min(threads_.size(), count - 1);
  for (std::size_t i = 0; i < helpers; ++i) submit([sweep] { sweep->take_part(); });
  sweep->take_part();
  sweep->wait();
}

void ThreadPool::run() {
  for (;;) {
    std::function<void()> task;
    {
      const MutexLock lock(mutex_);
      while (tasks_.empty() && !stopping_) wake_.wait(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace w5xde
