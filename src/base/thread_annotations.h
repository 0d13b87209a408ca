// Clang's thread-safety analysis, on in the fuzz build: touching a member without its mutex does not
// compile. std::mutex has no annotations, so Mutex wraps it.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define W5XDE_THREAD(x) __attribute__((x))
#else
#define W5XDE_THREAD(x)
#endif

#define W5XDE_GUARDED_BY(mutex) W5XDE_THREAD(guarded_by(mutex))
#define W5XDE_REQUIRES(mutex) W5XDE_THREAD(requires_capability(mutex))

namespace w5xde {

class W5XDE_THREAD(capability("mutex")) Mutex {
 public:
  void lock() W5XDE_THREAD(acquire_capability()) { mutex_.lock(); }
  void unlock() W5XDE_THREAD(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class W5XDE_THREAD(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) W5XDE_THREAD(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() W5XDE_THREAD(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits on a Mutex; the analysis sees it as held throughout, which is what the waiting code relies on.
using Condition = std::condition_variable_any;

}  // namespace w5xde
