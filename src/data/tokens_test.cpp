#include "data/tokens.h"

#include <gtest/gtest.h>

#include <string>

#include "support/data_files.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class TokensTest : public testing::Test {
 protected:
  std::string place(const std::string& name, std::string_view contents) const {
    write_file(folder_ / name, contents);
    return (folder_ / name).string();
  }
  static Result<SharedDataset> open(const std::string& place) { return open_tokens(place, Split::train); }

  TemporaryFolder folder_;
};

TEST_F(TokensTest, ids_of_every_type_are_read_from_npy_and_from_bare_files) {
  const std::vector<std::uint8_t> u8 = {1, 2, 3, 4};
  const std::vector<std::uint16_t> u16 = {1, 2, 65535, 4};
  const std::vector<std::int32_t> i32 = {1, 2, 70000, 4};
  const std::vector<std::int64_t> i64 = {1, 2, 70000, 4};
  struct Case {
    const char *name, *numpy;
    std::string ids;
    std::uint32_t vocabulary;
    DType dtype;
  };
  for (const Case& test :
       {Case{"u8", "|u1", memory_of(u8), 5, DType::u8}, Case{"u16", "<u2", memory_of(u16), 65536, DType::i32},
        Case{"i32", "<i4", memory_of(i32), 70001, DType::i32},
        Case{"i64", "<i8", memory_of(i64), 70001, DType::i64}}) {
    SCOPED_TRACE(test.name);
    const std::string bare = place("ids.bin", test.ids) + ":" + test.name;
    const std::string npy = place("ids.npy", npy_file(npy_header(test.numpy, "(4,)"), test.ids));
    std::string first;
    for (const std::string& which : {bare, npy}) {
      const auto data = open(which + ",context=3");
      ASSERT_TRUE(data.ok()) << data.error().message;
      EXPECT_EQ((*data)->classes(), test.vocabulary);
      EXPECT_EQ((*data)->inputs()[0].ids, test.vocabulary);
      EXPECT_EQ((*data)->targets().dtype, test.dtype);
      EXPECT_EQ((*data)->samples(), 1u);
      const std::string targets = gather_from(**data, {0}).targets;
      EXPECT_TRUE(first.empty() || targets == first);
      first = targets;
    }
  }
  const std::string u16_file = place("ids.bin", memory_of(u16)) + ":u16,context=3";
  EXPECT_EQ(gather_from(**open(u16_file), {0}).targets, memory_of(std::vector<std::int32_t>{2, 65535, 4}));
}

TEST_F(TokensTest, what_is_no_row_of_ids_is_refused_with_what_to_do) {
  const std::string bare = place("ids.bin", "abcdef");
  EXPECT_TRUE(says(refusal_of(open(bare)), "name it: tokens:" + bare + ":u16"));
  EXPECT_TRUE(says(refusal_of(open(bare + ":u32")), "name it: tokens:"));
  EXPECT_TRUE(says(refusal_of(open(bare + ":i32")), "6 bytes, which is no whole number of i32 ids"));
  EXPECT_TRUE(says(refusal_of(open(bare + ":u8,context=9")), "has 6 ids, of which 6 are for training"));
  const std::vector<std::int32_t> negative = {1, 2, -3};
  EXPECT_TRUE(says(refusal_of(open(place("n.bin", memory_of(negative)) + ":i32")), "id 2 of the row is -3"));
  const std::vector<std::int64_t> huge = {1, 1ll << 40};
  EXPECT_TRUE(
      says(refusal_of(open(place("h.bin", memory_of(huge)) + ":i64")), "id 1 of the row is 1099511627776"));
  const auto npy = [&](const char* dtype, const char* shape, std::string_view elements) {
    return refusal_of(open(place("ids.npy", npy_file(npy_header(dtype, shape), elements))));
  };
  EXPECT_TRUE(says(npy("<f4", "(2,)", "abcdefgh"), "ids of dtype '<f4' are not read"));
  EXPECT_TRUE(says(npy("<u2", "(2, 2)", "abcdefgh"), "array.reshape(-1)"));
  EXPECT_TRUE(says(npy("<u2", "(3,)", "abcdefgh"), "needs 6 bytes, the file has 8"));
  EXPECT_TRUE(says(refusal_of(open(place("ids.npy", "text"))), "ids.npy: this is not a .npy file"));
}

}  // namespace
}  // namespace w5xde
