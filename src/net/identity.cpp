#include "net/identity.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "base/errors.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/secret_file.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;
using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free)>;

// In a certificate of an identity; nobody looks at it, because identities are known by their keys.
constexpr const char* kOwnName = "w5xde";

bool add_extension(X509* certificate, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

struct Pems {
  std::string certificate;
  std::string key;
};

std::string text_in(BIO* pem) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(pem, &data);
  return {data, static_cast<std::size_t>(size)};
}

Result<Pems> make_self_signed(const std::string& server_name, const Validity& validity) {
  const KeyPtr pair(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const CertificatePtr made(X509_new(), X509_free);
  if (!pair || !made) return openssl_error("making a TLS key");
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), validity.begin_seconds);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), validity.end_seconds);
  X509_set_pubkey(made.get(), pair.get());
  X509_NAME* name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(server_name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  if (!add_extension(made.get(), NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(made.get(), NID_subject_alt_name, "DNS:" + server_name) ||
      X509_sign(made.get(), pair.get(), EVP_sha256()) == 0) {
    return openssl_error("signing a TLS certificate for " + server_name);
  }
  const BioPtr key_pem(BIO_new(BIO_s_mem()), BIO_free);
  const BioPtr certificate_pem(BIO_new(BIO_s_mem()), BIO_free);
  if (PEM_write_bio_PrivateKey(key_pem.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(certificate_pem.get(), made.get()) != 1) {
    return openssl_error("writing a TLS certificate for " + server_name);
  }
  return Pems{text_in(certificate_pem.get()), text_in(key_pem.get())};
}

BioPtr reading(const MappedFile& file) {
  return {BIO_new_mem_buf(file.bytes().data(), static_cast<int>(file.bytes().size())), BIO_free};
}

}  // namespace

Error openssl_error(const std::string& what) {
  const unsigned long code = ERR_get_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return invalid("{}: {}", what, reason != nullptr ? reason : "unknown reason");
}

std::string identity_of(const x509_st* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (size <= 0) return {};
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(
      der, [](unsigned char* memory) { OPENSSL_free(memory); });
  return hex_text(sha256({reinterpret_cast<const std::byte*>(der), static_cast<std::size_t>(size)}));
}

Digest fingerprint_of(const x509_st* certificate) {
  Digest fingerprint{};
  X509_digest(certificate, EVP_sha256(), reinterpret_cast<unsigned char*>(fingerprint.data()), nullptr);
  return fingerprint;
}

Result<Identity> Identity::open(const fs::path& certificate, const fs::path& key) {
  W5XDE_TRY(const MappedFile file, MappedFile::open(certificate));
  const BioPtr pem = reading(file);
  const CertificatePtr read(PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr), X509_free);
  if (!read) return openssl_error("TLS certificate " + certificate.string());
  W5XDE_TRY(const MappedFile key_file, MappedFile::open(key));
  const BioPtr key_pem = reading(key_file);
  const KeyPtr pair(PEM_read_bio_PrivateKey(key_pem.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  if (!pair) return openssl_error("TLS key " + key.string());
  if (X509_check_private_key(read.get(), pair.get()) != 1)
    return openssl_error(fmt::format("TLS key {} and certificate {}", key.string(), certificate.string()));
  Identity identity;
  identity.certificate_ = certificate;
  identity.key_ = key;
  identity.name_ = identity_of(read.get());
  identity.fingerprint_ = fingerprint_of(read.get());
  return identity;
}

// Key and certificate are one file, so that whoever finds one finds the other too.
Result<Identity> Identity::load_or_make(const fs::path& folder) {
  const fs::path file = folder / kFile;
  if (!real_disk().exists(file)) {
    W5XDE_CHECK(make_private_folder(folder));
    W5XDE_TRY(const Pems pems, make_self_signed(kOwnName, {}));
    W5XDE_CHECK(make_secret_file(file, bytes_of(pems.key + pems.certificate)));
  }
  W5XDE_CHECK(check_private(file));
  return open(file, file);
}

Status write_self_signed(const fs::path& certificate, const fs::path& key, const std::string& server_name,
                         const Validity& validity) {
  W5XDE_TRY(const Pems pems, make_self_signed(server_name, validity));
  W5XDE_CHECK(write_secret_file(key, bytes_of(pems.key)));
  const Bytes bytes = bytes_of(pems.certificate);
  return write_file_atomically(certificate, {&bytes, 1});
}

}  // namespace w5xde
