#include "wire/map_fields.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

using nlohmann::json;

const json kMap = {{"small", 7u},
                   {"large", UINT64_MAX},
                   {"negative", -1},
                   {"real", 1.0},
                   {"yes", true},
                   {"text", "words"},
                   {"long", std::string(257, 'x')},
                   {"texts", {"a", "b"}},
                   {"mixed", {"a", 1u}},
                   {"numbers", {1u, 2u, 3u}},
                   {"wide", {1ull << 62}},
                   {"many", json(65, 1u)},
                   {"null", nullptr}};

class MapReaderTest : public testing::Test {
 protected:
  Status read(const char* key, auto& to) const {
    MapReader reader("a test", kMap, limits_);
    reader(key, to);
    return reader.status();
  }

  const Limits limits_;
};

TEST_F(MapReaderTest, a_key_that_is_not_there_leaves_the_default) {
  std::uint64_t number = 5;
  bool flag = true;
  std::string text = "before";
  std::vector<std::int64_t> numbers = {5};
  EXPECT_TRUE(read("missing", number).ok() && read("missing", flag).ok());
  EXPECT_TRUE(read("missing", text).ok() && read("missing", numbers).ok());
  EXPECT_EQ(number, 5u);
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "before");
  EXPECT_EQ(numbers.size(), 1u);
}

TEST_F(MapReaderTest, what_is_there_is_read) {
  std::uint32_t number = 0;
  std::uint64_t large = 0;
  bool flag = false;
  std::string text;
  std::vector<std::int64_t> numbers;
  EXPECT_TRUE(read("small", number).ok() && read("large", large).ok());
  EXPECT_TRUE(read("yes", flag).ok() && read("text", text).ok());
  EXPECT_TRUE(read("numbers", numbers).ok());
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(large, UINT64_MAX);
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "words");
  EXPECT_EQ(numbers, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST_F(MapReaderTest, another_type_or_one_out_of_range_is_refused_by_name) {
  std::uint32_t number = 3;
  EXPECT_EQ(read("large", number).error().to_string(), "corrupt: 'large' in a test is not what it should be");
  for (const char* key : {"negative", "real", "yes", "text", "null", "texts"}) {
    EXPECT_FALSE(read(key, number).ok()) << key;
  }
  EXPECT_EQ(number, 3u) << "what is refused changes nothing";
  bool flag = false;
  for (const char* key : {"small", "text", "null"}) EXPECT_FALSE(read(key, flag).ok()) << key;
  std::string text;
  for (const char* key : {"small", "texts", "null", "long"}) EXPECT_FALSE(read(key, text).ok()) << key;
  std::vector<std::int64_t> numbers;
  for (const char* key : {"small", "mixed", "texts", "null", "wide", "many"}) {
    EXPECT_FALSE(read(key, numbers).ok()) << key;
  }
}

TEST_F(MapReaderTest, the_first_error_is_kept) {
  MapReader reader("a test", kMap, limits_);
  bool flag = false;
  reader("small", flag);
  reader("text", flag);
  reader("yes", flag);
  EXPECT_EQ(reader.status().error().message, "'small' in a test is not what it should be");
}

}  // namespace
}  // namespace w5xde
