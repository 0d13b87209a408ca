#include "net/crypto.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <memory>

#include "base/errors.h"
#include "base/hex.h"

namespace w5xde {

namespace {

unsigned char* raw(MutableBytes bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
const unsigned char* raw(Bytes bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

Digest sha256(Bytes bytes) {
  Digest digest{};
  EVP_Digest(bytes.data(), bytes.size(), raw(MutableBytes(digest)), nullptr, EVP_sha256(), nullptr);
  return digest;
}

std::string sha256_hex(Bytes bytes, const TellProgress& progress) {
  constexpr std::size_t kAtOnce = 16 * 1024 * 1024;
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> state(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  EVP_DigestInit_ex(state.get(), EVP_sha256(), nullptr);
  for (std::size_t at = 0; at < bytes.size(); at += kAtOnce) {
    tell(progress, at, bytes.size());
    const Bytes part = bytes.subspan(at, std::min(kAtOnce, bytes.size() - at));
    EVP_DigestUpdate(state.get(), part.data(), part.size());
  }
  Digest digest{};
  EVP_DigestFinal_ex(state.get(), raw(MutableBytes(digest)), nullptr);
  return hex_text(digest);
}

Digest hmac_sha256(Bytes key, Bytes message) {
  Digest digest{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), raw(message), message.size(),
       raw(MutableBytes(digest)), nullptr);
  return digest;
}

bool equal_in_constant_time(Bytes a, Bytes b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Status fill_with_random(MutableBytes bytes) {
  if (RAND_bytes(raw(bytes), static_cast<int>(bytes.size())) == 1) return {};
  return Error{ErrorKind::system, "this machine gives no random numbers"};
}

}  // namespace w5xde
