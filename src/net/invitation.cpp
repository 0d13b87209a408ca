#include "net/invitation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/errors.h"
#include "base/hash.h"

namespace w5xde {

namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kChecksumBytes = 4;
constexpr std::size_t kBytes =
    1 + sizeof(InvitationId) + sizeof(InvitationSecret) + sizeof(Digest) + kChecksumBytes;
constexpr std::size_t kChars = (kBytes * 8 + 5) / 6;

// Base64 for addresses (RFC 4648, 5), without padding.
std::string to_base64(Bytes bytes) {
  std::string text;
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const std::byte byte : bytes) {
    held = held << 8 | static_cast<std::uint32_t>(byte);
    for (bits += 8; bits >= 6; bits -= 6) text += kAlphabet[held >> (bits - 6) & 63];
  }
  if (bits > 0) text += kAlphabet[held << (6 - bits) & 63];
  return text;
}

Result<std::vector<std::byte>> from_base64(std::string_view text) {
  std::vector<std::byte> bytes;
  std::uint32_t held = 0;
  unsigned bits = 0;
  for (const char character : text) {
    const std::size_t value = kAlphabet.find(character);
    if (value == std::string_view::npos)
      return invalid("the invitation has a '{}', which no invitation has; copy it again", character);
    held = held << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::byte>(held >> bits & 0xff));
  }
  // Text that differs only in bits that say nothing would be a second form of the same invitation.
  if ((held & ((1u << bits) - 1)) != 0) return invalid("the invitation is mistyped; copy it again");
  return bytes;
}

std::uint32_t checksum_of(Bytes bytes) {
  return static_cast<std::uint32_t>(hash64(bytes));
}

template <std::size_t size>
void read_into(std::array<std::byte, size>& to, ByteReader& reader) {
  std::ranges::copy(reader.read_bytes(size), to.begin());
}

}  // namespace

std::string Invitation::to_string() const {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  writer.write(kVersion);
  writer.write_bytes(id);
  writer.write_bytes(secret);
  writer.write_bytes(certificate);
  writer.write(checksum_of(bytes));
  return fmt::format("{}{}/{}", kInvitationScheme, address.to_string(), to_base64(bytes));
}

Result<Invitation> parse_invitation(std::string_view text) {
  if (!text.starts_with(kInvitationScheme)) return invalid("an invitation begins with {}", kInvitationScheme);
  text.remove_prefix(kInvitationScheme.size());
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos)
    return invalid("the invitation is cut off: behind HOST:PORT come / and {} characters", kChars);
  Invitation invitation;
  W5XDE_TRY(invitation.address, parse_address(text.substr(0, slash)));
  text.remove_prefix(slash + 1);
  if (text.size() < kChars)
    return invalid("the invitation is cut off: behind the / are {} characters of {}; copy all of it",
                   text.size(), kChars);
  if (text.size() > kChars)
    return invalid("the invitation is too long: behind the / are {} characters, not {}; copy nothing but it",
                   text.size(), kChars);
  W5XDE_TRY(const auto bytes, from_base64(text));
  const Bytes checked = Bytes(bytes).first(bytes.size() - kChecksumBytes);
  if (load<std::uint32_t>(bytes.data() + checked.size()) != checksum_of(checked))
    return invalid("the invitation is mistyped: its checksum does not fit; copy it again");
  ByteReader reader(checked);
  if (const auto version = reader.read<std::uint8_t>(); version != kVersion)
    return incompatible("the invitation is of version {}, and this w5xde knows {}; update it", version,
                        kVersion);
  read_into(invitation.id, reader);
  read_into(invitation.secret, reader);
  read_into(invitation.certificate, reader);
  return invitation;
}

Digest proof_of(const InvitationSecret& secret, Bytes session_secret, std::string_view identity) {
  std::vector<std::byte> message(session_secret.begin(), session_secret.end());
  ByteWriter(message).write_bytes(bytes_of(identity));
  return hmac_sha256(secret, message);
}

}  // namespace w5xde
