#include "net/invitation.h"

#include <gtest/gtest.h>

#include "base/hex.h"

namespace w5xde {
namespace {

Invitation example() {
  Invitation invitation{.address = {"pool.example.org", 5555}};
  std::uint8_t next = 0;
  for (std::byte& byte : invitation.id) byte = std::byte{next++};
  for (std::byte& byte : invitation.secret) byte = std::byte{next++};
  for (std::byte& byte : invitation.certificate) byte = std::byte{next++};
  return invitation;
}

std::string refusal_of(std::string_view text) {
  const auto parsed = parse_invitation(text);
  return parsed.ok() ? "accepted" : parsed.error().to_string();
}

TEST(InvitationTest, has_one_form_that_stays_the_same) {
  EXPECT_EQ(
      example().to_string(),
      "w5xde://pool.example.org:5555/"
      "AQABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj9AQUJDREVGRxrm"
      "ANU");
}

TEST(InvitationTest, that_is_written_is_read) {
  const auto parsed = parse_invitation(example().to_string());
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->address.to_string(), "pool.example.org:5555");
  EXPECT_EQ(parsed->id, example().id);
  EXPECT_EQ(parsed->secret, example().secret);
  EXPECT_EQ(parsed->certificate, example().certificate);
  Invitation v6 = example();
  v6.address = {"::1", 1};
  EXPECT_EQ(parse_invitation(v6.to_string())->address.to_string(), "[::1]:1");
}

TEST(InvitationTest, another_name_of_the_machine_may_take_the_place_of_the_first) {
  std::string text = example().to_string();
  text.replace(text.find("pool.example.org"), 16, "10.0.0.7");
  const auto parsed = parse_invitation(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->address.host, "10.0.0.7");
  EXPECT_EQ(parsed->secret, example().secret);
}

TEST(InvitationTest, cut_off_anywhere_is_refused) {
  const std::string text = example().to_string();
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string refusal = refusal_of(text.substr(0, size));
    EXPECT_TRUE(refusal.starts_with("invalid: ")) << size << ": " << refusal;
  }
  EXPECT_EQ(refusal_of(text.substr(0, text.size() - 1)),
            "invalid: the invitation is cut off: behind the / are 102 characters of 103; copy all of it");
  EXPECT_EQ(refusal_of("w5xde://pool.example.org:5555"),
            "invalid: the invitation is cut off: behind HOST:PORT come / and 103 characters");
}

TEST(InvitationTest, one_wrong_character_anywhere_is_told_from_a_wrong_invitation) {
  const std::string text = example().to_string();
  for (std::size_t at = text.rfind('/') + 1; at < text.size(); ++at) {
    for (const char other : {'A', 'b', '7', '_'}) {
      std::string mistyped = text;
      if (mistyped[at] == other) continue;
      mistyped[at] = other;
      const std::string refusal = refusal_of(mistyped);
      EXPECT_NE(refusal.find("mistyped"), std::string::npos) << at << " " << other << ": " << refusal;
    }
  }
}

TEST(InvitationTest, what_is_none_is_refused_with_what_one_looks_like) {
  EXPECT_EQ(refusal_of("http://a:1/x"), "invalid: an invitation begins with w5xde://");
  EXPECT_EQ(refusal_of("w5xde://a/x"), "invalid: 'a' is not HOST:PORT, such as 192.168.1.5:5555");
  EXPECT_EQ(
      refusal_of(example().to_string() + "A"),
      "invalid: the invitation is too long: behind the / are 104 characters, not 103; copy nothing but it");
  std::string text = example().to_string();
  text.back() = '.';
  EXPECT_EQ(refusal_of(text), "invalid: the invitation has a '.', which no invitation has; copy it again");
}

TEST(InvitationTest, a_proof_is_of_one_secret_one_session_and_one_key) {
  const auto secret = example().secret;
  const std::string key(64, 'a');
  const Digest proof = proof_of(secret, bytes_of("session"), key);
  EXPECT_EQ(proof, proof_of(secret, bytes_of("session"), key));
  EXPECT_NE(proof, proof_of(secret, bytes_of("another"), key));
  EXPECT_NE(proof, proof_of(secret, bytes_of("session"), std::string(64, 'b')));
  EXPECT_NE(proof, proof_of(example().certificate, bytes_of("session"), key));
  EXPECT_EQ(hex_text(proof), hex_text(hmac_sha256(secret, bytes_of("session" + key))));
}

}  // namespace
}  // namespace w5xde
