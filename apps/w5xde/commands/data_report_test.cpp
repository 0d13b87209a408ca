#include "commands/data_report.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

TEST(DataReport, says_how_many_samples_there_are_and_what_they_are) {
  const auto data = open_dataset("random:4,3,6", Split::train, 1).value();
  const std::string text = data_report("train", *data, 1).value();
  EXPECT_TRUE(text.starts_with("train: 6 samples, ")) << text;
  EXPECT_NE(text.find("f32 [4]  numbers\n"), std::string::npos) << text;
  EXPECT_NE(text.find("3 classes\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  samples of each class  "), std::string::npos) << text;
  EXPECT_NE(text.find("  sample 0\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("  sample 1\n"), std::string::npos) << text;
}

TEST(DataReport, shows_bytes_of_text_as_text) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "book.txt";
  std::ofstream(file) << "Call me Ishmael. Some years ago, never mind how long\nprecisely";
  const auto data = open_dataset("text:" + file.string() + ",context=16", Split::train, 1).value();
  const std::string text = data_report("train", *data, 1).value();
  EXPECT_NE(text.find("\"Call me Ishmael.\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\"all me Ishmael. \"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("256 classes"), std::string::npos) << text;
}

}  // namespace
}  // namespace w5xde
