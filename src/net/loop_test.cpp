#include "net/loop.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "net/asio_loop.h"
#include "support/sim_loop.h"

namespace w5xde {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(SimLoopTest, tasks_run_in_the_order_of_their_time_and_then_of_asking) {
  SimLoop loop;
  std::string order;
  loop.after(milliseconds(2), [&] { order += 'c'; });
  loop.after(milliseconds(1), [&] { order += 'a'; });
  loop.after(milliseconds(1), [&] { order += 'b'; });
  loop.after(milliseconds(9), [&] { order += 'z'; });
  loop.run_for(milliseconds(5));
  EXPECT_EQ(order, "abc");
}

TEST(SimLoopTest, an_hour_passes_at_once_and_the_clock_shows_it) {
  SimLoop loop;
  const Instant start = loop.now();
  Instant seen;
  loop.after(hours(1), [&] { seen = loop.now(); });
  loop.run_for(hours(2));
  EXPECT_EQ(seen - start, hours(1));
  EXPECT_EQ(loop.now() - start, hours(2));
}

TEST(SimLoopTest, a_cancelled_timer_does_not_run_and_cancelling_late_is_harmless) {
  SimLoop loop;
  int runs = 0;
  const auto cancelled = loop.after(milliseconds(1), [&] { ++runs; });
  const auto kept = loop.after(milliseconds(1), [&] { ++runs; });
  loop.cancel(cancelled);
  loop.run_for(milliseconds(2));
  loop.cancel(kept);
  EXPECT_EQ(runs, 1);
}

TEST(AsioLoopTest, posted_tasks_of_other_threads_run_on_the_loop) {
  AsioLoop loop;
  int runs = 0;
  bool on_loop = true;
  std::thread other;
  loop.post([&] {
    other = std::thread([&] {
      EXPECT_FALSE(loop.on_loop());
      for (int i = 0; i < 100; ++i) {
        loop.post([&] {
          on_loop = on_loop && loop.on_loop();
          ++runs;
        });
      }
    });
  });
  loop.run_until([&] { return runs == 100; });
  other.join();
  EXPECT_TRUE(on_loop);
}

TEST(AsioLoopTest, timers_run_in_order_and_cancelled_ones_do_not) {
  AsioLoop loop;
  std::string order;
  loop.after(milliseconds(20), [&] { order += 'b'; });
  loop.after(milliseconds(1), [&] { order += 'a'; });
  const auto cancelled = loop.after(milliseconds(2), [&] { order += '!'; });
  loop.cancel(cancelled);
  loop.run_until([&] { return order.size() >= 2; });
  EXPECT_EQ(order, "ab");
}

TEST(AsioLoopTest, a_timer_that_is_due_can_still_be_cancelled_by_a_task_before_it) {
  AsioLoop loop;
  bool ran = false;
  Loop::TimerId second = 0;
  loop.after(milliseconds(0), [&] { loop.cancel(second); });
  second = loop.after(milliseconds(0), [&] { ran = true; });
  bool later = false;
  loop.after(milliseconds(5), [&] { later = true; });
  loop.run_until([&] { return later; });
  EXPECT_FALSE(ran);
}

TEST(AsioLoopTest, an_eager_loop_runs_what_comes_while_it_looks_and_what_comes_later) {
  AsioLoop loop;
  std::string order;
  unsigned asked = 0;
  loop.post([&] { order += 'a'; });
  loop.after(std::chrono::microseconds(50), [&] { order += 'b'; });
  loop.after(milliseconds(20), [&] { order += 'c'; });
  loop.run_until([&] { return order.size() == 3; }, [&] { return ++asked > 0; });
  EXPECT_EQ(order, "abc");
  EXPECT_LE(asked, 6u) << "it never slept";
}

TEST(AsioLoopTest, stop_ends_run_until_too_whatever_the_condition) {
  for (const bool eager : {false, true}) {
    AsioLoop loop;
    loop.post([&] { loop.stop(); });
    loop.run_until([] { return false; }, [&] { return eager; });
  }
}

TEST(AsioLoopTest, stop_ends_run_from_another_thread) {
  AsioLoop loop;
  std::thread other([&] { loop.post([&] { loop.stop(); }); });
  loop.run();
  other.join();
}

}  // namespace
}  // namespace w5xde
