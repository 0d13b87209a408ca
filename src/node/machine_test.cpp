#include "node/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

namespace w5xde {
namespace {

TEST(Machine, is_the_same_to_everybody_on_it) {
  const Machine here = Machine::here();
  EXPECT_EQ(here.id.size(), 32u) << "a hash, and nothing that says who it is";
  EXPECT_GE(here.cores, 1u);
  EXPECT_GT(here.memory_bytes, 0u);
  EXPECT_LT(here.memory_bytes, UINT64_MAX) << "this system says how much is free";
  std::thread([&] {
    const Machine there = Machine::here();
    EXPECT_EQ(there.id, here.id);
    EXPECT_EQ(there.cores, here.cores);
  }).join();
}

TEST(Machine, is_another_to_who_was_given_cores_of_its_own) {
  const Machine whole = Machine::here();
  cpu_set_t mask;
  ASSERT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
  const bool shared = CPU_COUNT(&mask) > 1;
  // On a thread of its own: the mask goes with it.
  std::thread([&] {
    const int core = sched_getcpu();
    CPU_ZERO(&mask);
    CPU_SET(static_cast<std::size_t>(core), &mask);
    ASSERT_EQ(sched_setaffinity(0, sizeof mask, &mask), 0);
    const Machine part = Machine::here();
    EXPECT_EQ(part.cores, 1u);
    EXPECT_EQ(part.id != whole.id, shared);
  }).join();
}

TEST(ProcessMemory, grows_with_what_a_process_holds) {
  const std::uint64_t before = proportional_set_bytes(::getpid());
  EXPECT_GT(before, 100'000u);
  // Much, because what is shared counts less as soon as more processes share it.
  const std::vector<char> held(256 << 20, 'x');
  const std::uint64_t after = proportional_set_bytes(::getpid());
  EXPECT_GT(after, before + (240u << 20)) << held.back();
}

TEST(ProcessMemory, of_a_process_that_is_gone_is_zero) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(proportional_set_bytes(child), 0u);
}

}  // namespace
}  // namespace w5xde
