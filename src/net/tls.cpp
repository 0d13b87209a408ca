#include "net/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <utility>

#include "base/file.h"
#include "net/tls_stream.h"

namespace w5xde {

namespace {

constexpr long kTenYearsSeconds = 10L * 365 * 24 * 3600;

Error refused(const std::string& what) {
  const unsigned long code = ERR_get_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return invalid(fmt::format("{}: {}", what, reason != nullptr ? reason : "unknown reason"));
}

std::shared_ptr<SSL_CTX> new_context(const SSL_METHOD* method) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), SSL_CTX_free);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  // Nobody resumes sessions here, and the tickets would be the first bytes that a client must read.
  SSL_CTX_set_num_tickets(context.get(), 0);
  return context;
}

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;
using BioPtr = std::unique_ptr<BIO, decltype(&BIO_free)>;

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

Status write_pem(const std::filesystem::path& path, BIO* pem) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(pem, &data);
  const std::array<Bytes, 1> parts = {bytes_of({data, static_cast<std::size_t>(size)})};
  return write_file_atomically(path, parts);
}

}  // namespace

Result<TlsContext> TlsContext::server(const std::filesystem::path& certificate,
                                      const std::filesystem::path& key) {
  auto context = new_context(TLS_server_method());
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1) {
    return refused("TLS certificate " + certificate.string());
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return refused("TLS key " + key.string());
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) {
    return refused(fmt::format("TLS key {} and certificate {}", key.string(), certificate.string()));
  }
  return TlsContext(std::move(context), {});
}

Result<TlsContext> TlsContext::client(const std::filesystem::path& authorities, std::string server_name) {
  if (server_name.empty()) return invalid("a TLS client needs the name of its server");
  auto context = new_context(TLS_client_method());
  if (SSL_CTX_load_verify_file(context.get(), authorities.c_str()) != 1) {
    return refused("TLS authorities " + authorities.string());
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  return TlsContext(std::move(context), std::move(server_name));
}

std::unique_ptr<Stream> TlsContext::wrap(std::unique_ptr<Stream> stream) const {
  const auto side = server_name_.empty() ? TlsStream::Side::server : TlsStream::Side::client;
  return std::make_unique<TlsStream>(std::move(stream), context_.get(), side, server_name_);
}

Status write_self_signed(const std::filesystem::path& certificate, const std::filesystem::path& key,
                         const std::string& server_name) {
  const KeyPtr pair(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const CertificatePtr made(X509_new(), X509_free);
  if (!pair || !made) return refused("making a TLS key");
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);  // clocks differ
  X509_gmtime_adj(X509_getm_notAfter(made.get()), kTenYearsSeconds);
  X509_set_pubkey(made.get(), pair.get());
  X509_NAME* name = X509_get_subject_name(made.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(server_name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made.get(), name);
  if (!add_extension(made.get(), NID_basic_constraints, "critical,CA:TRUE") ||
      !add_extension(made.get(), NID_subject_alt_name, "DNS:" + server_name) ||
      X509_sign(made.get(), pair.get(), EVP_sha256()) == 0) {
    return refused("signing a TLS certificate for " + server_name);
  }
  const BioPtr key_pem(BIO_new(BIO_s_mem()), BIO_free);
  const BioPtr certificate_pem(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_PrivateKey(key_pem.get(), pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
  PEM_write_bio_X509(certificate_pem.get(), made.get());
  W5XDE_CHECK(write_pem(key, key_pem.get()));
  std::filesystem::permissions(key, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  return write_pem(certificate, certificate_pem.get());
}

}  // namespace w5xde
