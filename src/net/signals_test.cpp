#include "net/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

#include "support/patience.h"

namespace w5xde {
namespace {

TEST(SignalsTest, a_signal_is_delivered_on_the_loop_as_often_as_it_comes) {
  AsioLoop loop;
  std::vector<int> caught;
  const Signals signals(loop, {SIGUSR1, SIGUSR2}, [&](int signal) {
    EXPECT_TRUE(loop.on_loop());
    caught.push_back(signal);
  });
  std::raise(SIGUSR1);
  EXPECT_TRUE(caught.empty()) << "not from inside the signal";
  EXPECT_TRUE(run_until(loop, [&] { return caught.size() == 1; }));
  std::raise(SIGUSR2);
  EXPECT_TRUE(run_until(loop, [&] { return caught.size() == 2; }));
  std::raise(SIGUSR1);
  EXPECT_TRUE(run_until(loop, [&] { return caught.size() == 3; }));
  EXPECT_EQ(caught, (std::vector<int>{SIGUSR1, SIGUSR2, SIGUSR1}));
}

TEST(SignalsTest, nothing_is_delivered_when_it_is_gone) {
  AsioLoop loop;
  int first = 0, second = 0;
  auto gone = std::make_unique<Signals>(loop, std::initializer_list<int>{SIGUSR1}, [&](int) { ++first; });
  const Signals stays(loop, {SIGUSR1}, [&](int) { ++second; });
  std::raise(SIGUSR1);  // on its way when the first goes
  gone.reset();
  EXPECT_TRUE(run_until(loop, [&] { return second == 1; }));
  std::raise(SIGUSR1);
  EXPECT_TRUE(run_until(loop, [&] { return second == 2; }));
  EXPECT_EQ(first, 0);
}

}  // namespace
}  // namespace w5xde
