#include "record/process_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace w5xde {
namespace {

TEST(ProcessMemory, grows_with_what_a_process_holds) {
  const std::uint64_t before = proportional_set_bytes(::getpid());
  EXPECT_GT(before, 100'000u);
  const std::vector<char> held(64 << 20, 'x');
  const std::uint64_t after = proportional_set_bytes(::getpid());
  EXPECT_GT(after, before + (60u << 20)) << held.back();
}

TEST(ProcessMemory, of_a_process_that_is_gone_is_zero) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(proportional_set_bytes(child), 0u);
}

}  // namespace
}  // namespace w5xde
