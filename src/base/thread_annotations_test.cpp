#include "base/thread_annotations.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace w5xde {
namespace {

// Guarded as the project's classes are, so that the thread-safety analysis has something to look at.
class Tally {
 public:
  void add_one() {
    const MutexLock lock(mutex_);
    const int before = count_;
    std::this_thread::yield();  // without the lock, another thread's addition would be lost here
    count_ = before + 1;
    changed_.notify_all();
  }

  int wait_for(int count) {
    const MutexLock lock(mutex_);
    while (count_ < count) changed_.wait(mutex_);
    return count_locked();
  }

 private:
  int count_locked() const W5XDE_REQUIRES(mutex_) { return count_; }

  Mutex mutex_;
  Condition changed_;
  int count_ W5XDE_GUARDED_BY(mutex_) = 0;
};

TEST(Mutex, lets_one_thread_in_at_a_time) {
  Tally tally;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&tally] {
      for (int k = 0; k < 500; ++k) tally.add_one();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(tally.wait_for(2000), 2000);
}

TEST(Condition, wakes_a_waiter_and_gives_the_mutex_back_to_it) {
  Tally tally;
  std::thread adder([&tally] { tally.add_one(); });
  EXPECT_EQ(tally.wait_for(1), 1);
  adder.join();
  tally.add_one();  // would hang if the waiter had kept the mutex
  EXPECT_EQ(tally.wait_for(2), 2);
}

}  // namespace
}  // namespace w5xde
