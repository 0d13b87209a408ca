#include "data/text.h"

#include <gtest/gtest.h>

#include <string>

#include "support/data_files.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

TEST(TextTest, the_bytes_of_any_file_are_ids_of_a_vocabulary_of_256) {
  const TemporaryFolder folder;
  const std::string path = (folder / "poem, and more.txt").string();
  std::string text = "\xff\x01 words";
  text.resize(50, '.');
  write_file(path, text);
  const auto data = open_text(path + ",context=7", Split::train);
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ((*data)->classes(), 256u);
  EXPECT_EQ((*data)->inputs()[0].dtype, DType::u8);
  EXPECT_FALSE((*data)->inputs()[0].pixels);
  EXPECT_EQ((*data)->samples(), 6u);  // 45 bytes to train on
  EXPECT_EQ(gather_from(**data, {0}).inputs, text.substr(0, 7));
  EXPECT_EQ(gather_from(**data, {0}).targets, text.substr(1, 7));
  EXPECT_EQ(open_text(path + ",context=7", Split::test).value(), nullptr) << "five bytes are no window";
  EXPECT_EQ((*open_text(path + ",context=4", Split::test))->samples(), 1u);
}

TEST(TextTest, a_file_that_is_too_short_or_missing_is_refused) {
  const TemporaryFolder folder;
  const std::string path = (folder / "short.txt").string();
  write_file(path, "brief");
  EXPECT_TRUE(
      says(refusal_of(open_text(path, Split::train)),
           path + " has 5 ids, of which 5 are for training, and a window with context=128 takes 129"));
  write_file(path, "");
  EXPECT_TRUE(says(refusal_of(open_text(path, Split::train)), "has 0 ids"));
  EXPECT_TRUE(says(refusal_of(open_text(path + "s", Split::train)), "there is no file " + path + "s"));
}

}  // namespace
}  // namespace w5xde
