#include "data/gzip_reader.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "support/data_files.h"

namespace w5xde {
namespace {

std::string refusal_of_reading(const std::string& file, std::size_t bytes) {
  GzipReader reader(bytes_of(file));
  std::string out(bytes, '\0');
  if (auto read = reader.read(std::as_writable_bytes(std::span(out))); !read.ok()) return refusal_of(read);
  return refusal_of(reader.finish());
}

RC_GTEST_PROP(GzipReaderTest, reads_in_any_pieces_what_was_packed, (const std::string& raw)) {
  const std::string packed = gzip_of(raw);
  RC_ASSERT(is_gzip(bytes_of(packed)));
  GzipReader reader(bytes_of(packed));
  std::string back(raw.size(), '\0');
  auto rest = std::as_writable_bytes(std::span(back));
  while (!rest.empty()) {
    const auto piece = *rc::gen::inRange<std::size_t>(1, rest.size() + 1);
    RC_ASSERT(reader.read(rest.first(piece)).ok());
    rest = rest.subspan(piece);
  }
  RC_ASSERT(reader.finish().ok());
  RC_ASSERT(back == raw);
}

RC_GTEST_PROP(GzipReaderTest, refuses_every_file_that_is_cut_short, (const std::string& raw)) {
  const std::string packed = gzip_of(raw);
  const auto cut = *rc::gen::inRange<std::size_t>(0, packed.size());
  RC_ASSERT(refusal_of_reading(packed.substr(0, cut), raw.size()) != "accepted");
}

TEST(GzipReaderTest, says_what_is_wrong_with_a_file) {
  const std::string packed = gzip_of("0123456789");
  EXPECT_EQ(refusal_of_reading(packed, 10), "accepted");
  EXPECT_TRUE(says(refusal_of_reading(packed, 11), "ends 10 bytes into a piece of 11"));
  EXPECT_TRUE(says(refusal_of_reading(packed, 9), "more bytes than its contents say"));
  EXPECT_TRUE(says(refusal_of_reading(packed.substr(0, packed.size() - 3), 10), "cut short"));
  EXPECT_TRUE(says(refusal_of_reading(packed + "x", 10), "bytes follow the end"));
  EXPECT_TRUE(says(refusal_of_reading("plain text", 10), "corrupt: the gzip file is damaged"));
  std::string flipped = packed;
  flipped[flipped.size() - 6] ^= 1;  // in the checksum
  EXPECT_TRUE(says(refusal_of_reading(flipped, 10), "incorrect data check"));
}

TEST(GzipReaderTest, packs_no_more_into_a_byte_than_the_ratio_it_is_trusted_with) {
  const std::string zeros(1 << 20, '\0');
  EXPECT_LT(zeros.size(), gzip_of(zeros).size() * kGzipRatioMax);
}

TEST(GzipReaderTest, is_told_from_other_files_by_its_first_two_bytes) {
  EXPECT_FALSE(is_gzip({}));
  EXPECT_FALSE(is_gzip(bytes_of("\x1f")));
  EXPECT_FALSE(is_gzip(bytes_of("ab")));
  EXPECT_TRUE(is_gzip(bytes_of("\x1f\x8b")));
}

}  // namespace
}  // namespace w5xde
