#include "wire/proof.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "support/message_bytes.h"

namespace w5xde {
namespace {

Proof example() {
  Proof proof;
  std::uint8_t next = 1;
  for (std::byte& byte : proof.invitation) byte = std::byte{next++};
  for (std::byte& byte : proof.machine) byte = std::byte{next++};
  for (std::byte& byte : proof.code) byte = std::byte{next++};
  return proof;
}

TEST(ProofTest, its_bytes_are_those_of_the_wire_format) {
  EXPECT_EQ(hex_of(encoded(example())),
            "0102030405060708"
            "090a0b0c0d0e0f101112131415161718"
            "191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738");
}

TEST(ProofTest, that_is_written_is_read) {
  const auto decoded = decode_proof(encoded(example()));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, example());
}

TEST(ProofTest, of_any_other_length_is_refused) {
  Head head = encoded(example());
  for (std::size_t size = 0; size < head.size(); ++size)
    EXPECT_EQ(decode_proof(Bytes(head).first(size)).error().kind, ErrorKind::corrupt) << size;
  head.push_back(std::byte{0});
  EXPECT_EQ(decode_proof(head).error().to_string(), "corrupt: the head of a proof is not 56 bytes");
}

}  // namespace
}  // namespace w5xde
