#include "base/secret_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

unsigned mode_of(const std::filesystem::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777u;
}

std::string text_in(const std::filesystem::path& path) {
  return std::string(text_of(MappedFile::open(path)->bytes()));
}

class SecretFileTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "key";
};

TEST_F(SecretFileTest, nobody_but_the_owner_may_read_it) {
  ASSERT_TRUE(write_secret_file(file_, bytes_of("one")).ok());
  EXPECT_EQ(mode_of(file_), 0600u);
  EXPECT_TRUE(check_private(file_).ok());
  ASSERT_TRUE(write_secret_file(file_, bytes_of("two")).ok());
  EXPECT_EQ(mode_of(file_), 0600u);
  EXPECT_EQ(text_in(file_), "two");
  std::filesystem::permissions(file_, std::filesystem::perms(0640));
  const Status open = check_private(file_);
  ASSERT_FALSE(open.ok());
  EXPECT_NE(open.error().message.find("chmod 600"), std::string::npos) << open.error().message;
}

TEST_F(SecretFileTest, one_that_is_there_stays_as_it_is) {
  ASSERT_TRUE(make_secret_file(file_, bytes_of("first")).ok());
  ASSERT_TRUE(make_secret_file(file_, bytes_of("second")).ok());
  EXPECT_EQ(text_in(file_), "first");
  EXPECT_EQ(mode_of(file_), 0600u);
}

TEST_F(SecretFileTest, all_that_make_it_at_once_find_the_same_one) {
  constexpr int kThreads = 8;
  std::vector<std::string> found(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i, &found] {
      const std::string mine = std::to_string(i) + std::string(10'000, 'x');
      EXPECT_TRUE(make_secret_file(file_, bytes_of(mine)).ok());
      found[static_cast<std::size_t>(i)] = text_in(file_);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : found) EXPECT_EQ(text, found[0]);
  EXPECT_EQ(found[0].size(), 10'001u);
  EXPECT_EQ(real_disk().names_in(folder_.path()).size(), 1u) << "no temporary file is left";
}

TEST_F(SecretFileTest, a_folder_is_closed_to_others_when_it_is_made_and_left_alone_when_it_is_there) {
  const auto made = folder_ / "a/b";
  ASSERT_TRUE(make_private_folder(made).ok());
  EXPECT_EQ(mode_of(made), 0700u);
  std::filesystem::permissions(made, std::filesystem::perms(0755));
  ASSERT_TRUE(make_private_folder(made).ok());
  EXPECT_EQ(mode_of(made), 0755u);
}

TEST_F(SecretFileTest, a_folder_that_cannot_be_written_to_is_named) {
  const Status status = write_secret_file(folder_ / "none/key", bytes_of("x"));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("none/key"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace w5xde
