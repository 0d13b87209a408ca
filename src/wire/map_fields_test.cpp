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
                   {"many", json(9, 1u)},
                   {"overflows", {1ull << 40, 1ull << 40}},
                   {"dtype", "i16"},
                   {"entry", {{"inside", 3u}}},
                   {"entries", {{{"inside", 3u}}, json::object(), {{"inside", 5u}}}},
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
  Shape shape = {5};
  DType dtype = DType::f16;
  std::optional<std::int64_t> perhaps = 5;
  EXPECT_TRUE(read("missing", number).ok() && read("missing", flag).ok());
  EXPECT_TRUE(read("missing", text).ok() && read("missing", shape).ok());
  EXPECT_TRUE(read("missing", dtype).ok() && read("missing", perhaps).ok());
  EXPECT_EQ(number, 5u);
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "before");
  EXPECT_EQ(shape, Shape{5});
  EXPECT_EQ(dtype, DType::f16);
  EXPECT_EQ(perhaps, 5);
}

TEST_F(MapReaderTest, what_is_there_is_read) {
  std::uint32_t number = 0;
  std::uint64_t large = 0;
  bool flag = false;
  std::string text;
  Shape shape;
  DType dtype = DType::f16;
  std::optional<std::int64_t> perhaps;
  EXPECT_TRUE(read("small", number).ok() && read("large", large).ok());
  EXPECT_TRUE(read("yes", flag).ok() && read("text", text).ok());
  EXPECT_TRUE(read("numbers", shape).ok() && read("dtype", dtype).ok() && read("negative", perhaps).ok());
  EXPECT_EQ(number, 7u);
  EXPECT_EQ(large, UINT64_MAX);
  EXPECT_TRUE(flag);
  EXPECT_EQ(text, "words");
  EXPECT_EQ(shape, (Shape{1, 2, 3}));
  EXPECT_EQ(dtype, DType::i16);
  EXPECT_EQ(perhaps, -1);
  EXPECT_TRUE(read("null", perhaps = std::nullopt).ok());
  EXPECT_FALSE(perhaps);
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
  Shape shape;
  for (const char* key : {"small", "mixed", "texts", "null", "wide", "many", "overflows"}) {
    EXPECT_FALSE(read(key, shape).ok()) << key;
  }
  DType dtype = DType::f16;
  for (const char* key : {"small", "text", "null"}) EXPECT_FALSE(read(key, dtype).ok()) << key;
  std::optional<std::int64_t> perhaps;
  for (const char* key : {"large", "real", "text"}) EXPECT_FALSE(read(key, perhaps).ok()) << key;
}

struct Entry {
  std::uint64_t inside = 1;
};
constexpr auto kEntry = [](auto& field, auto& entry) { field("inside", entry.inside); };

TEST_F(MapReaderTest, members_with_keys_of_their_own_are_read_as_many_as_are_allowed) {
  MapReader reader("a test", kMap, limits_);
  Entry entry;
  std::vector<Entry> entries;
  reader.map("entry", entry, kEntry);
  reader.maps("entries", entries, kEntry, 3);
  EXPECT_TRUE(reader.status().ok());
  EXPECT_EQ(entry.inside, 3u);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[1].inside, 1u);
  EXPECT_EQ(entries[2].inside, 5u);
  EXPECT_EQ(MapWriter::map_of(entry, kEntry), kMap["entry"]);

  const auto refused = [&](const auto& read_it) {
    MapReader wrong("a test", kMap, limits_);
    read_it(wrong);
    return !wrong.status().ok();
  };
  EXPECT_TRUE(refused([&](MapReader& wrong) { wrong.maps("entries", entries, kEntry, 2); }));
  EXPECT_TRUE(refused([&](MapReader& wrong) { wrong.maps("texts", entries, kEntry, 2); }));
  EXPECT_TRUE(refused([&](MapReader& wrong) { wrong.map("small", entry, kEntry); }));
  EXPECT_TRUE(refused([&](MapReader& wrong) {
    wrong.map("entry", entry, [](auto& field, auto& inside) {
      bool flag = false;
      (void)inside;
      field("inside", flag);
    });
  }));
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
