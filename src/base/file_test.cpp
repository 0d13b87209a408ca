#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/full_disk.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

namespace fs = std::filesystem;

class File : public testing::Test {
 protected:
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_.path())) found.push_back(entry.path().filename());
    return found;
  }

  TemporaryFolder folder_;
};

// A file that a test writes is small, and its write is expected to work.
void put(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

Status write_text(const fs::path& path, std::string_view text) {
  const Bytes part = bytes_of(text);
  return write_file_atomically(path, {&part, 1});
}

std::string contents_of(const fs::path& path) {
  const auto file = MappedFile::open(path);
  return file.ok() ? std::string(text_of(file->bytes())) : file.error().to_string();
}

TEST_F(File, is_mapped_as_it_is) {
  put(folder_ / "some", std::string_view("a\0b\n", 4));
  const auto file = MappedFile::open(folder_ / "some");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(text_of(file->bytes()), std::string_view("a\0b\n", 4));
}

TEST_F(File, that_is_empty_is_mapped_to_no_bytes) {
  put(folder_ / "empty", "");
  const auto file = MappedFile::open(folder_ / "empty");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
}

TEST_F(File, that_is_missing_is_the_caller_s_mistake_and_named) {
  put(folder_ / "file", "no folder");
  for (const fs::path& path : {folder_ / "missing", folder_ / "file/in"}) {
    const auto file = MappedFile::open(path);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().kind, ErrorKind::invalid);
    EXPECT_EQ(file.error().message, "there is no file " + path.string());
  }
}

TEST_F(File, that_is_a_folder_or_a_pipe_is_not_mapped) {
  const auto folder = MappedFile::open(folder_.path());
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().kind, ErrorKind::invalid);
  EXPECT_EQ(folder.error().message, folder_.path().string() + " is not a regular file");

  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const auto pipe = MappedFile::open(folder_ / "pipe");  // must not wait for a writer
  ASSERT_FALSE(pipe.ok());
  EXPECT_EQ(pipe.error().kind, ErrorKind::invalid);
}

TEST_F(File, stays_mapped_while_it_is_replaced_and_removed) {
  const fs::path path = folder_ / "kept";
  ASSERT_TRUE(write_text(path, "old").ok());
  const auto old_file = MappedFile::open(path);
  ASSERT_TRUE(old_file.ok());
  ASSERT_TRUE(write_text(path, "new and longer").ok());
  EXPECT_EQ(text_of(old_file->bytes()), "old");
  EXPECT_EQ(contents_of(path), "new and longer");
  fs::remove(path);
  EXPECT_EQ(text_of(old_file->bytes()), "old");
}

TEST_F(File, mapping_is_there_until_its_last_copy_goes) {
  put(folder_ / "one", "one");
  put(folder_ / "two", "two");
  auto one = std::make_unique<MappedFile>(MappedFile::open(folder_ / "one").value());
  MappedFile copy = *one;
  one.reset();
  EXPECT_EQ(text_of(copy.bytes()), "one");
  copy = MappedFile::open(folder_ / "two").value();
  EXPECT_EQ(text_of(copy.bytes()), "two");
}

TEST_F(File, is_written_from_its_parts_in_order) {
  const std::vector<Bytes> parts = {bytes_of("one "), bytes_of(""), bytes_of("two "), bytes_of("three")};
  ASSERT_TRUE(write_file_atomically(folder_ / "parts", parts).ok());
  EXPECT_EQ(contents_of(folder_ / "parts"), "one two three");
  ASSERT_TRUE(write_file_atomically(folder_ / "empty", {}).ok());
  EXPECT_EQ(contents_of(folder_ / "empty"), "");
}

TEST_F(File, that_is_written_replaces_the_old_one_and_leaves_nothing_beside_it) {
  const fs::path path = folder_ / "state";
  ASSERT_TRUE(write_text(path, "a long old text").ok());
  ASSERT_TRUE(write_text(path, "new").ok());
  EXPECT_EQ(contents_of(path), "new");
  EXPECT_EQ(names(), std::vector<std::string>{"state"});
}

TEST_F(File, can_be_written_by_a_name_without_a_folder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  const Status written = write_text("plain", "here");
  fs::current_path(before);
  ASSERT_TRUE(written.ok()) << written.error().to_string();
  EXPECT_EQ(contents_of(folder_ / "plain"), "here");
}

TEST_F(File, in_a_missing_folder_is_refused_with_path_and_reason) {
  const Status written = write_text(folder_ / "missing" / "file", "text");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, ErrorKind::system);
  EXPECT_NE(written.error().message.find((folder_ / "missing" / "file").string()), std::string::npos);
  EXPECT_NE(written.error().message.find("No such file or directory"), std::string::npos);
  EXPECT_TRUE(names().empty());
}

TEST_F(File, does_not_replace_a_folder_and_leaves_nothing_beside_it) {
  fs::create_directory(folder_ / "taken");
  const Status written = write_text(folder_ / "taken", "text");
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, ErrorKind::system);
  EXPECT_NE(written.error().message.find((folder_ / "taken").string()), std::string::npos);
  EXPECT_NE(written.error().message.find("Is a directory"), std::string::npos);
  EXPECT_EQ(names(), std::vector<std::string>{"taken"});
  EXPECT_TRUE(fs::is_directory(folder_ / "taken"));
}

TEST_F(File, that_does_not_fit_the_disk_leaves_the_old_one_as_it_was) {
  const fs::path path = folder_ / "state";
  ASSERT_TRUE(write_text(path, "old").ok());
  Status written;
  {
    const FullDisk full(1000);
    written = write_text(path, std::string(5000, 'x'));
  }
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, ErrorKind::system);
  EXPECT_NE(written.error().message.find("File too large"), std::string::npos) << written.error().message;
  EXPECT_EQ(contents_of(path), "old");
  EXPECT_EQ(names(), std::vector<std::string>{"state"});
}

// Each text says by its one letter how long it must be, so a mixture of two writers' bytes shows.
std::string text_of_letter(char letter) {
  return std::string(static_cast<std::size_t>(letter - 'a' + 1) * 3000, letter);
}

TEST_F(File, is_whole_whenever_a_reader_looks_while_others_write_it) {
  const fs::path path = folder_ / "state";
  ASSERT_TRUE(write_text(path, text_of_letter('a')).ok());
  std::atomic<int> writing = 3;
  std::atomic<int> failed = 0;
  std::vector<std::thread> writers;
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < 60; ++i) {
        const auto letter = static_cast<char>('a' + (i * 3 + w) % 20);
        if (!write_text(path, text_of_letter(letter)).ok()) ++failed;
      }
      --writing;
    });
  }
  int torn = 0;
  do {
    const std::string seen = contents_of(path);
    if (seen.empty() || seen != text_of_letter(seen.front())) ++torn;
  } while (writing > 0);
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(names(), std::vector<std::string>{"state"});
}

TEST(SystemError, says_what_was_tried_and_why_it_failed) {
  const Error error = system_error("writing run.db", ENOSPC);
  EXPECT_EQ(error.to_string(), "system: writing run.db: No space left on device");
}

}  // namespace
}  // namespace w5xde
