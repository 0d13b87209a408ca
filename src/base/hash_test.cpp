#include "base/hash.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/random.h"

namespace w5xde {
namespace {

std::vector<std::byte> noise_of(std::size_t size) {
  Random random(size);
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random.next() >> 56);
  return bytes;
}

// XXH3's own numbers; frames, checkpoints and fingerprints on disk carry them.
TEST(Hash, has_the_published_values_of_xxh3) {
  EXPECT_EQ(hash64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(hash64(bytes_of("abc")), 0x78af5f94892f3950u);
  EXPECT_EQ(hash128_hex({}), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash128_hex(bytes_of("abc")), "06b05ab6733a618578af5f94892f3950");
}

// XXH3 has one way for each of these lengths, and the long one depends on the vector unit.
TEST(Hash, is_the_same_at_every_length_for_ever) {
  EXPECT_EQ(hash64(noise_of(16)), 0xbd86bd753467aeddu);
  EXPECT_EQ(hash64(noise_of(128)), 0x8a6dbabdf4f9a87fu);
  EXPECT_EQ(hash64(noise_of(240)), 0x0a49ad2afca13083u);
  EXPECT_EQ(hash64(noise_of(5000)), 0xbd0db865dc506d32u);
  EXPECT_EQ(hash128_hex(noise_of(5000)), "e74a48c331f01e54bd0db865dc506d32");
}

TEST(Hash, of_128_bits_keeps_its_leading_zeros) {
  for (std::size_t size = 0; size < 300; ++size) EXPECT_EQ(hash128_hex(noise_of(size)).size(), 32u);
}

TEST(Hash, in_two_pieces_equals_the_hash_of_the_whole_at_every_split) {
  Hash64 hash;
  for (const std::size_t size : {0u, 1u, 16u, 17u, 128u, 240u, 241u, 256u, 257u, 600u, 1500u}) {
    const auto bytes = noise_of(size);
    const std::uint64_t whole = hash64(bytes);
    for (std::size_t split = 0; split <= size; ++split) {
      hash.reset();
      hash.update(Bytes(bytes).first(split));
      hash.update(Bytes(bytes).subspan(split));
      ASSERT_EQ(hash.digest(), whole) << "size " << size << ", split " << split;
    }
  }
}

RC_GTEST_PROP(Hash, in_many_pieces_equals_the_hash_of_the_whole, (const std::vector<std::uint16_t>& cuts)) {
  const auto bytes = noise_of(3000);
  Hash64 hash;
  Bytes rest(bytes);
  for (const std::size_t cut : cuts) {
    const Bytes piece = rest.first(std::min(cut, rest.size()));
    hash.update(piece);
    rest = rest.subspan(piece.size());
  }
  hash.update(rest);
  RC_ASSERT(hash.digest() == hash64(bytes));
}

TEST(Hash, can_be_asked_midway_and_goes_on) {
  const auto bytes = noise_of(1000);
  Hash64 hash;
  EXPECT_EQ(hash.digest(), hash64({}));
  hash.update(Bytes(bytes).first(700));
  EXPECT_EQ(hash.digest(), hash64(Bytes(bytes).first(700)));
  hash.update(Bytes(bytes).subspan(700));
  EXPECT_EQ(hash.digest(), hash64(bytes));
  hash.reset();
  EXPECT_EQ(hash.digest(), hash64({}));
}

TEST(Hash, notices_any_flipped_bit) {
  auto bytes = noise_of(300);
  const std::uint64_t before = hash64(bytes);
  const std::string long_before = hash128_hex(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(hash64(bytes), before);
    EXPECT_NE(hash128_hex(bytes), long_before);
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace
}  // namespace w5xde
