#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "base/thread_annotations.h"

namespace w5xde {

// A fixed number of threads for heavy work, which may be none: then everything runs on the calling thread.
// Any thread may call it; the destructor finishes what was submitted. Tasks and bodies must not throw.
class ThreadPool {
 public:
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return threads_.size(); }

  void submit(std::function<void()> task);

  // Calls body(0) … body(count - 1), each once, on the pool and on the calling thread, and returns when all
  // are done. The caller takes part, so a pool of n threads gives n + 1 lanes and a full one cannot deadlock.
  void for_each(std::size_t count, const std::function<void(std::size_t)>& body);

 private:
  void run();

  Mutex mutex_;
  Condition wake_;
  std::deque<std::function<void()>> tasks_ W5XDE_GUARDED_BY(mutex_);
  bool stopping_ W5XDE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace w5xde
