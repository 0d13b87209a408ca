#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "net/crypto.h"
#include "w5xde/result.h"

struct x509_st;

namespace w5xde {

// Who a side is: a key that never leaves its machine, and a certificate for it. Its name is the SHA-256 of
// the public key; a certificate that is made anew for the same key is still the same identity.
class Identity {
 public:
  static constexpr const char* kFile = "identity.pem";

  // The one in FOLDER/identity.pem. If there is none, it is made, with mode 0600, and so is the folder, with
  // mode 0700. However many processes do this at once, all get the same one.
  static Result<Identity> load_or_make(const std::filesystem::path& folder);
  // A user's own: PEM files of the certificate (with those that lead to its authority) and of its key.
  static Result<Identity> open(const std::filesystem::path& certificate, const std::filesystem::path& key);

  const std::string& name() const { return name_; }  // 64 hexadecimal digits
  const Digest& fingerprint() const { return fingerprint_; }
  const std::filesystem::path& certificate_file() const { return certificate_; }
  const std::filesystem::path& key_file() const { return key_; }

 private:
  std::filesystem::path certificate_;
  std::filesystem::path key_;
  std::string name_;
  Digest fingerprint_{};  // the SHA-256 of the certificate's DER form
};

// The name of the identity that a certificate is of, and the certificate's fingerprint.
std::string identity_of(const x509_st* certificate);
Digest fingerprint_of(const x509_st* certificate);

// When a certificate is valid, in seconds from now.
struct Validity {
  std::int64_t begin_seconds = -3600;  // clocks differ
  std::int64_t end_seconds = 10LL * 365 * 24 * 3600;
};

// Writes a new key, with mode 0600, and a certificate that it signs itself, valid for this name.
Status write_self_signed(const std::filesystem::path& certificate, const std::filesystem::path& key,
                         const std::string& server_name, const Validity& validity = {});

// What OpenSSL's last call failed at, within `what`.
Error openssl_error(const std::string& what);

}  // namespace w5xde
