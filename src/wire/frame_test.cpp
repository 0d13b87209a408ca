#include "wire/frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "base/hash.h"
#include "support/hex.h"

namespace w5xde {
namespace {

const std::vector<FrameType> kTypes = {
    FrameType::hello,      FrameType::goodbye,  FrameType::ping,    FrameType::pong,
    FrameType::tensors,    FrameType::value,    FrameType::lease,   FrameType::contribution,
    FrameType::parameters, FrameType::offer,    FrameType::ready,   FrameType::model,
    FrameType::status,     FrameType::feedback, FrameType::verdict, FrameType::proof};

// Changes one byte of a header and makes the checksum right again: what a sound peer of another version would
// send.
FrameHeaderBytes with_byte(FrameHeaderBytes bytes, std::size_t at, std::uint8_t value) {
  bytes[at] = std::byte{value};
  store(bytes.data() + 20, static_cast<std::uint32_t>(hash64(Bytes(bytes).first(20))));
  return bytes;
}

FrameHeader typical() {
  return {.type = FrameType::contribution,
          .codec = 3,
          .shuffle_width = 4,
          .head_bytes = 77,
          .payload_bytes = 1720};
}

void expect_refusal(const FrameHeaderBytes& bytes, const std::string& expected, const Limits& limits = {}) {
  const auto header = decode_frame_header(bytes, limits);
  ASSERT_FALSE(header.ok()) << "accepted, but should say '" << expected << "'";
  EXPECT_EQ(header.error().to_string(), expected);
}

TEST(FrameHeader, has_these_bytes) {
  const FrameHeader header{.type = FrameType::contribution,
                           .codec = 3,
                           .shuffle_width = 4,
                           .head_bytes = 0x04030201,
                           .payload_bytes = 0x1817161514131211};
  const std::string fields =
      "57355844"           // magic: W5XD
      "01"                 // version
      "08"                 // type
      "03"                 // codec
      "02"                 // flags: log2 of the shuffle width
      "01020304"           // head bytes
      "1112131415161718";  // payload bytes
  EXPECT_EQ(hex_of(encode_frame_header(header)), fields + "79bd3864");
}

TEST(FrameHeader, knows_how_long_its_frame_is) {
  EXPECT_EQ(FrameHeader{}.frame_bytes(), 32u);
  EXPECT_EQ((FrameHeader{.head_bytes = 100, .payload_bytes = 1000}.frame_bytes()), 1132u);
}

TEST(FrameHeader, every_type_has_a_name_and_no_other_number_has) {
  for (unsigned number = 0; number < 256; ++number) {
    const bool known = number >= 1 && number <= kTypes.size();
    EXPECT_EQ(name_of(static_cast<FrameType>(number)).empty(), !known) << number;
  }
}

RC_GTEST_PROP(FrameHeader, what_is_encoded_is_decoded, ()) {
  const FrameHeader header{
      .type = *rc::gen::elementOf(kTypes),
      .codec = *rc::gen::arbitrary<std::uint8_t>(),
      .shuffle_width = *rc::gen::element<std::uint8_t>(0, 2, 4, 8),
      .head_bytes = *rc::gen::arbitrary<std::uint32_t>(),
      .payload_bytes = *rc::gen::arbitrary<std::uint64_t>(),
  };
  const Limits no_limits{.head_bytes_max = UINT64_MAX, .payload_bytes_max = UINT64_MAX};
  const auto decoded = decode_frame_header(encode_frame_header(header), no_limits);
  RC_ASSERT(decoded.ok());
  RC_ASSERT(decoded.value() == header);
}

TEST(FrameHeader, with_any_one_bit_flipped_is_refused) {
  for (const FrameHeader& header : {FrameHeader{}, typical()}) {
    const FrameHeaderBytes sound = encode_frame_header(header);
    ASSERT_TRUE(decode_frame_header(sound, Limits{}).ok());
    for (std::size_t bit = 0; bit < 8 * kFrameHeaderBytes; ++bit) {
      FrameHeaderBytes flipped = sound;
      flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
      const auto decoded = decode_frame_header(flipped, Limits{});
      ASSERT_FALSE(decoded.ok()) << "bit " << bit;
      EXPECT_EQ(decoded.error().kind, ErrorKind::corrupt) << "bit " << bit;
    }
  }
}

TEST(FrameHeader, that_does_not_start_with_the_magic_is_refused_with_what_it_starts_with) {
  expect_refusal(with_byte(encode_frame_header(typical()), 0, 'w'),
                 "corrupt: not a w5xde frame: it starts with 77 35 58 44");
  expect_refusal(with_byte(encode_frame_header(typical()), 3, 0),
                 "corrupt: not a w5xde frame: it starts with 57 35 58 00");
}

TEST(FrameHeader, that_is_the_beginning_of_a_tls_handshake_is_refused_with_what_to_do) {
  FrameHeaderBytes bytes = encode_frame_header(typical());
  bytes[0] = std::byte{0x16};
  bytes[1] = std::byte{0x03};
  expect_refusal(
      bytes,
      "incompatible: the other side speaks TLS, and this one does not; join HOST:PORT instead of an "
      "invitation, or serve with TLS");
}

TEST(FrameHeader, whose_checksum_does_not_fit_is_refused) {
  FrameHeaderBytes bytes = encode_frame_header(typical());
  bytes[20] ^= std::byte{1};
  expect_refusal(bytes, "corrupt: frame header checksum does not fit");
}

TEST(FrameHeader, of_another_version_is_refused_with_both_versions) {
  const FrameHeaderBytes bytes = encode_frame_header(typical());
  expect_refusal(with_byte(bytes, 4, 2), "incompatible: frame version 2; this side speaks 1");
  expect_refusal(with_byte(bytes, 4, 0), "incompatible: frame version 0; this side speaks 1");
}

TEST(FrameHeader, of_a_type_that_is_not_known_is_refused) {
  const FrameHeaderBytes bytes = encode_frame_header(typical());
  expect_refusal(with_byte(bytes, 5, 0), "corrupt: frame type 0 is not known");
  expect_refusal(with_byte(bytes, 5, 17), "corrupt: frame type 17 is not known");
  expect_refusal(with_byte(bytes, 5, 255), "corrupt: frame type 255 is not known");
}

TEST(FrameHeader, with_flags_that_are_not_known_is_refused) {
  const FrameHeaderBytes bytes = encode_frame_header(typical());
  expect_refusal(with_byte(bytes, 7, 0x04), "corrupt: frame flags 0x04 are not known");
  expect_refusal(with_byte(bytes, 7, 0x82), "corrupt: frame flags 0x82 are not known");
}

TEST(FrameHeader, may_have_lengths_up_to_the_limits_and_not_a_byte_more) {
  const Limits limits{.head_bytes_max = 77, .payload_bytes_max = 1720};
  EXPECT_TRUE(decode_frame_header(encode_frame_header(typical()), limits).ok());
  FrameHeader header = typical();
  header.head_bytes = 78;
  expect_refusal(encode_frame_header(header),
                 "overloaded: a contribution frame has a head of 78 bytes; at most 77", limits);
  header = typical();
  header.payload_bytes = 1721;
  expect_refusal(encode_frame_header(header),
                 "overloaded: a contribution frame has a payload of 1721 bytes; at most 1720", limits);
}

// Magic, then checksum, then version: noise is not called damage, and damage is not called another version.
TEST(FrameHeader, that_is_wrong_in_many_ways_is_refused_for_the_first) {
  FrameHeaderBytes bytes = encode_frame_header(typical());
  for (const std::size_t at : {4u, 5u, 7u}) bytes[at] = std::byte{0xff};
  expect_refusal(bytes, "corrupt: frame header checksum does not fit");
  expect_refusal(with_byte(bytes, 4, 0xff), "incompatible: frame version 255; this side speaks 1");
  expect_refusal(with_byte(bytes, 4, kFrameVersion), "corrupt: frame type 255 is not known");
  bytes[0] = std::byte{0};
  expect_refusal(bytes, "corrupt: not a w5xde frame: it starts with 00 35 58 44");
}

}  // namespace
}  // namespace w5xde
