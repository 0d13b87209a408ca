#include "base/file_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

TEST(FileLockTest, one_holds_it_at_a_time_and_the_others_wait) {
  const TemporaryFolder folder;
  // Without the lock, threads that read, wait for each other's turn and write lose counts.
  std::atomic<int> count = 0;
  constexpr int kThreads = 4, kTurns = 200;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const auto lock = FileLock::wait_for(folder / "lock");
        ASSERT_TRUE(lock.ok());
        const int before = count;
        std::this_thread::yield();
        count = before + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kTurns);
}

TEST(FileLockTest, a_path_that_cannot_be_opened_is_named) {
  const auto lock = FileLock::wait_for("/nowhere/at/all");
  ASSERT_FALSE(lock.ok());
  EXPECT_NE(lock.error().message.find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace w5xde
