#include "local_pool/child.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class ChildTest : public testing::Test {
 protected:
  std::vector<Child> shells(const std::vector<std::string>& scripts) {
    std::vector<Child> children;
    for (const std::string& script : scripts) {
      children.push_back(Child::start({"sh", "-c", script}, folder_ / "output").value());
    }
    return children;
  }

  TemporaryFolder folder_;
};

TEST_F(ChildTest, all_are_waited_for) {
  auto children = shells({"true", "echo done"});
  EXPECT_TRUE(wait_for(children, {}).ok());
  for (Child& child : children) EXPECT_EQ(child.exit_code(), 0);
}

TEST_F(ChildTest, one_that_fails_takes_the_others_with_it_and_has_the_last_word) {
  auto children = shells({"sleep 1000", "echo first; echo no room >&2; exit 3"});
  const Status status = wait_for(children, {});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("no room"), std::string::npos) << status.error().message;
  EXPECT_EQ(children[0].exit_code(), 128 + SIGTERM);
}

TEST_F(ChildTest, an_interrupt_stops_them) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  auto children = shells({"sleep 1000"});
  EXPECT_FALSE(wait_for(children, {.interrupt = ends[0]}).ok());
  EXPECT_TRUE(children[0].exit_code());
  close(ends[0]);
  close(ends[1]);
}

TEST_F(ChildTest, what_is_forgotten_is_killed_with_all_it_started) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    const auto child = Child::start({"sh", "-c", "trap '' TERM; sleep 1000 & wait"}).value();
    close(ends[1]);
  }
  // The pipe ends when nobody is left who inherited it.
  char nothing = 0;
  EXPECT_EQ(read(ends[0], &nothing, 1), 0);
  close(ends[0]);
}

TEST_F(ChildTest, a_program_that_is_not_there_fails_as_a_shell_says_it) {
  auto child = Child::start({"w5xde-no-such-program"}).value();
  const Status status = wait_for({&child, 1}, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "w5xde-no-such-program: there is no such program");
  EXPECT_EQ(child.exit_code(), 127);
}

}  // namespace
}  // namespace w5xde
