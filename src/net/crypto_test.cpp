#include "net/crypto.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/hex.h"

namespace w5xde {
namespace {

// The values of FIPS 180-4's and RFC 4231's examples.
TEST(CryptoTest, sha256_is_that_of_the_standard) {
  EXPECT_EQ(hex_text(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(CryptoTest, sha256_of_what_takes_long_is_the_same_and_says_how_far_it_is) {
  const std::vector<std::byte> bytes(40'000'000, std::byte{7});
  std::vector<std::uint64_t> told;
  const std::string hash = sha256_hex(bytes, [&](std::uint64_t done, std::uint64_t all) {
    EXPECT_EQ(all, bytes.size());
    told.push_back(done);
  });
  EXPECT_EQ(hash, hex_text(sha256(bytes)));
  EXPECT_EQ(told.size(), 3u);
}

TEST(CryptoTest, hmac_is_that_of_the_standard) {
  EXPECT_EQ(hex_text(hmac_sha256(bytes_of("Jefe"), bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(CryptoTest, equal_means_every_byte) {
  EXPECT_TRUE(equal_in_constant_time(bytes_of("same"), bytes_of("same")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("same"), bytes_of("sama")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("same"), bytes_of("sam")));
}

TEST(CryptoTest, random_bytes_differ) {
  Digest one{}, two{};
  ASSERT_TRUE(fill_with_random(one).ok());
  ASSERT_TRUE(fill_with_random(two).ok());
  EXPECT_NE(one, two);
}

}  // namespace
}  // namespace w5xde
