#include "net/identity.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

unsigned mode_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777u;
}

class IdentityTest : public testing::Test {
 protected:
  std::string refusal() const {
    const auto identity = Identity::load_or_make(folder_ / "state");
    return identity.ok() ? "accepted" : identity.error().message;
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "state/identity.pem";
};

TEST_F(IdentityTest, is_made_at_first_use_and_found_again) {
  const auto first = Identity::load_or_make(folder_ / "state");
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->name().size(), 64u);
  EXPECT_EQ(mode_of(folder_ / "state"), 0700u);
  EXPECT_EQ(mode_of(file_), 0600u);
  const auto again = Identity::load_or_make(folder_ / "state");
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->name(), first->name());
  EXPECT_EQ(again->fingerprint(), first->fingerprint());
  const auto other = Identity::load_or_make(folder_ / "elsewhere");
  EXPECT_NE(other->name(), first->name());
}

TEST_F(IdentityTest, all_that_begin_at_once_have_the_same_one) {
  constexpr std::size_t kThreads = 6;
  std::vector<std::string> names(kThreads);
  std::vector<std::thread> threads;
  for (std::string& name : names) {
    threads.emplace_back([this, &name] {
      const auto identity = Identity::load_or_make(folder_ / "state");
      name = identity.ok() ? identity->name() : identity.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& name : names) EXPECT_EQ(name, names[0]);
  EXPECT_EQ(names[0].size(), 64u) << names[0];
}

TEST_F(IdentityTest, a_key_that_others_may_read_is_refused_with_what_to_type) {
  ASSERT_EQ(refusal(), "accepted");
  std::filesystem::permissions(file_, std::filesystem::perms(0644));
  EXPECT_NE(refusal().find("chmod 600 " + file_.string()), std::string::npos) << refusal();
}

TEST_F(IdentityTest, a_file_that_is_damaged_is_named_and_not_replaced) {
  ASSERT_EQ(refusal(), "accepted");
  std::ofstream(file_) << "garbage";
  EXPECT_NE(refusal().find(file_.string()), std::string::npos) << refusal();
  EXPECT_EQ(std::filesystem::file_size(file_), 7u);
}

TEST_F(IdentityTest, is_known_by_its_key_whatever_its_certificate_says) {
  ASSERT_TRUE(write_self_signed(folder_ / "a.pem", folder_ / "a.key", "a").ok());
  ASSERT_TRUE(write_self_signed(folder_ / "b.pem", folder_ / "b.key", "a").ok());
  const auto a = Identity::open(folder_ / "a.pem", folder_ / "a.key");
  const auto b = Identity::open(folder_ / "b.pem", folder_ / "b.key");
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_NE(a->name(), b->name());
  EXPECT_EQ(mode_of(folder_ / "a.key"), 0600u);
}

TEST_F(IdentityTest, missing_or_wrong_files_of_a_user_are_named) {
  ASSERT_TRUE(write_self_signed(folder_ / "a.pem", folder_ / "a.key", "a").ok());
  ASSERT_TRUE(write_self_signed(folder_ / "b.pem", folder_ / "b.key", "a").ok());
  const auto said = [&](const char* certificate, const char* key) {
    const auto identity = Identity::open(folder_ / certificate, folder_ / key);
    return identity.ok() ? "accepted" : identity.error().message;
  };
  EXPECT_NE(said("none.pem", "a.key").find("none.pem"), std::string::npos);
  EXPECT_NE(said("a.pem", "none.key").find("none.key"), std::string::npos);
  EXPECT_NE(said("a.pem", "b.key").find("b.key and certificate"), std::string::npos);
  EXPECT_NE(said("a.pem", "a.pem").find("TLS key"), std::string::npos);
}

}  // namespace
}  // namespace w5xde
