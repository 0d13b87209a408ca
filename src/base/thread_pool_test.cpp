#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <latch>
#include <stdexcept>
#include <thread>
#include <vector>

namespace w5xde {
namespace {

class ThreadPoolOf : public testing::TestWithParam<std::size_t> {};

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, testing::Values(0, 1, 3));

TEST_P(ThreadPoolOf, these_threads_runs_each_index_exactly_once) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.size(), GetParam());
  for (const std::size_t count : {0u, 1u, 2u, 3u, 4u, 100u, 1000u}) {
    std::vector<std::atomic<int>> runs(count + 1);
    pool.for_each(count, [&](std::size_t index) { ++runs[index]; });
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(runs[i], 1) << i << " of " << count;
    EXPECT_EQ(runs[count], 0);
  }
}

TEST_P(ThreadPoolOf, these_threads_may_nest_sweeps) {
  ThreadPool pool(GetParam());
  std::atomic<int> runs = 0;
  pool.for_each(8, [&](std::size_t) {
    pool.for_each(8, [&](std::size_t) { pool.for_each(3, [&](std::size_t) { ++runs; }); });
  });
  EXPECT_EQ(runs, 8 * 8 * 3);
}

TEST_P(ThreadPoolOf, these_threads_serves_many_callers_at_once) {
  ThreadPool pool(GetParam());
  std::atomic<int> runs = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int sweep = 0; sweep < 50; ++sweep) pool.for_each(5, [&](std::size_t) { ++runs; });
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(runs, 4 * 50 * 5);
}

TEST_P(ThreadPoolOf, these_threads_finishes_what_was_submitted_before_it_goes) {
  std::atomic<int> runs = 0;
  {
    ThreadPool pool(GetParam());
    for (int i = 0; i < 100; ++i) pool.submit([&] { ++runs; });
  }
  EXPECT_EQ(runs, 100);
}

TEST_P(ThreadPoolOf, these_threads_finishes_what_its_last_tasks_submit) {
  std::atomic<int> runs = 0;
  {
    ThreadPool pool(GetParam());
    pool.submit([&] { pool.submit([&] { ++runs; }); });
  }
  EXPECT_EQ(runs, 1);
}

// Every index waits for all the others: this ends only if the caller and the three threads each take one.
TEST(ThreadPool, gives_one_lane_more_than_it_has_threads) {
  ThreadPool pool(3);
  std::barrier<> everyone(4);
  pool.for_each(4, [&](std::size_t) { everyone.arrive_and_wait(); });
}

// Both lanes are in a body when the caller's ends; the other one dawdles.
TEST(ThreadPool, does_not_return_before_the_last_body_has) {
  ThreadPool pool(1);
  const auto caller = std::this_thread::get_id();
  for (int sweep = 0; sweep < 20; ++sweep) {
    std::barrier<> both(2);
    std::atomic<int> done = 0;
    pool.for_each(2, [&](std::size_t) {
      both.arrive_and_wait();
      for (int i = 0; i < 200 && std::this_thread::get_id() != caller; ++i) std::this_thread::yield();
      ++done;
    });
    ASSERT_EQ(done, 2);
  }
}

TEST(ThreadPool, that_is_busy_does_not_hold_up_a_sweep) {
  ThreadPool pool(1);
  std::latch busy(1);
  std::latch done(1);
  pool.submit([&] {
    busy.count_down();
    done.wait();
  });
  busy.wait();
  int runs = 0;  // not atomic: the caller is the one lane that is free
  pool.for_each(10, [&](std::size_t) { ++runs; });
  EXPECT_EQ(runs, 10);
  done.count_down();
}

TEST(ThreadPool, runs_tasks_on_its_own_threads_in_the_order_of_submission) {
  std::vector<int> order;
  std::thread::id runner;
  {
    ThreadPool pool(1);
    for (int i = 0; i < 20; ++i) {
      pool.submit([&, i] {
        order.push_back(i);
        runner = std::this_thread::get_id();
      });
    }
  }
  ASSERT_EQ(order.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_NE(runner, std::this_thread::get_id());
}

TEST(ThreadPool, without_threads_runs_a_task_at_once_on_the_caller) {
  ThreadPool pool(0);
  std::thread::id runner;
  pool.submit([&] { runner = std::this_thread::get_id(); });
  EXPECT_EQ(runner, std::this_thread::get_id());
}

TEST(ThreadPoolDeathTest, ends_the_process_when_a_body_throws) {
  ThreadPool pool(0);
  const auto throwing = [](std::size_t) { throw std::runtime_error("out of luck"); };
  EXPECT_DEATH(pool.for_each(1, throwing), "out of luck");
}

}  // namespace
}  // namespace w5xde
