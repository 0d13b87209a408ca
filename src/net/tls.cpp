#include "net/tls.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <utility>

#include "base/errors.h"
#include "base/file.h"

namespace w5xde {

namespace {

// Read from below this much at a time: a record is at most 16 KiB, and a system call for each would be many.
constexpr int kReadAheadBytes = 128 * 1024;

constexpr long kTenYearsSeconds = 10L * 365 * 24 * 3600;

// Why OpenSSL's last call failed.
std::string reasons() {
  std::string text;
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (!text.empty()) text += ", ";
    text += reason != nullptr ? reason : "unknown";
  }
  return text;
}

Error refused(const std::string& what) {
  const unsigned long code = ERR_get_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return invalid("{}: {}", what, reason != nullptr ? reason : "unknown reason");
}

class TlsStream final : public Stream {
 public:
  // A server's own name is empty; a client's is that of the server it wants.
  TlsStream(std::unique_ptr<Stream> inner, SSL_CTX* context, const std::string& server_name)
      : inner_(std::move(inner)), ssl_(SSL_new(context)), self_(std::make_shared<TlsStream*>(this)) {
    BIO* bio = BIO_new(bio_method());
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_, bio, bio);
    SSL_set_mode(ssl_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_read_ahead(ssl_, 1);
    SSL_set_default_read_buffer_len(ssl_, kReadAheadBytes);
    if (server_name.empty()) {
      SSL_set_accept_state(ssl_);
      return;
    }
    SSL_set_connect_state(ssl_);
    SSL_set_tlsext_host_name(ssl_, server_name.c_str());
    SSL_set1_host(ssl_, server_name.c_str());
    // The client speaks first, even if it only wants to read. An error here is found by the first read or
    // write.
    SSL_do_handshake(ssl_);
    ERR_clear_error();
  }
  ~TlsStream() override {
    *self_ = nullptr;
    TlsStream::close();
    SSL_free(ssl_);
  }
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Result<std::size_t> read(std::span<const iovec> parts) override {
    return transfer(parts, reading_, SSL_read_ex);
  }
  Result<std::size_t> write(std::span<const iovec> parts) override {
    return transfer(parts, writing_, SSL_write_ex);
  }

  void when_readable(Loop::Task task) override {
    on_readable_ = std::move(task);
    if (!reading_.read && !reading_.write) reading_.read = true;
    if (failure_ || (SSL_has_pending(ssl_) != 0 && !reading_.write)) return wake_soon();
    arm();
  }
  void when_writable(Loop::Task task) override {
    on_writable_ = std::move(task);
    if (!writing_.read && !writing_.write) writing_.write = true;
    if (failure_) return wake_soon();
    arm();
  }

  // Tells the other side that nothing was cut off; whether it fits into the socket does not matter any more.
  void finish_writing() override {
    if (!failure_ && SSL_is_init_finished(ssl_) != 0) SSL_shutdown(ssl_);
    ERR_clear_error();
    inner_->finish_writing();
  }
  void close() override {
    on_readable_ = nullptr;
    on_writable_ = nullptr;
    if (!closed_) TlsStream::finish_writing();
    closed_ = true;
    failure_ = disconnected("this side has closed the connection");
    inner_->close();
  }

  Loop& loop() override { return inner_->loop(); }
  std::string peer() const override { return inner_->peer(); }
  void tune(const SocketOptions& options) override { inner_->tune(options); }
  void fit(const MeasuredLink& link) override { inner_->fit(link); }
  bool encrypted() const override { return true; }
  std::optional<TcpReport> tcp_report() const override { return inner_->tcp_report(); }

 private:
  struct Wants {
    bool read = false;
    bool write = false;
  };

  // What an SSL call that did not get through waits for; sets failure_ if it never will.
  Wants wants_after(int result) {
    switch (SSL_get_error(ssl_, result)) {
      case SSL_ERROR_WANT_READ:
        return {.read = true};
      case SSL_ERROR_WANT_WRITE:
        return {.write = true};
      case SSL_ERROR_ZERO_RETURN:
        failure_ = disconnected(peer() + " has closed the connection");
        break;
      default:
        failure_ = inner_error_.empty() ? incompatible("TLS with " + peer() + ": " + reasons())
                                        : disconnected(inner_error_);
    }
    ERR_clear_error();
    // Waiting tasks run at once and find the failure.
    return {.read = true, .write = true};
  }

  // Moves the parts with SSL_read_ex or SSL_write_ex.
  Result<std::size_t> transfer(std::span<const iovec> parts, Wants& wants, auto call) {
    std::size_t total = 0;
    wants = {};
    for (const iovec& part : parts) {
      for (std::size_t at = 0; at < part.iov_len && !failure_;) {
        std::size_t count = 0;
        const int result = call(ssl_, static_cast<char*>(part.iov_base) + at, part.iov_len - at, &count);
        if (result != 1) {
          wants = wants_after(result);
          if (!failure_) return total;
        }
        at += count;
        total += count;
      }
    }
    // Bytes that got through count; the failure is found again by the next call.
    if (failure_ && total == 0) return *failure_;
    return total;
  }

  void arm() {
    const bool read = (on_readable_ && reading_.read) || (on_writable_ && writing_.read);
    const bool write = (on_readable_ && reading_.write) || (on_writable_ && writing_.write);
    if (read) inner_->when_readable([this] { wake(); });
    if (write) inner_->when_writable([this] { wake(); });
  }

  void wake_soon() {
    loop().post([self = self_] {
      if (*self != nullptr) (*self)->wake();
    });
  }

  // Runs the waiting tasks: one that cannot go on yet asks again.
  void wake() {
    const auto self = self_;
    auto readable = std::exchange(on_readable_, nullptr);
    auto writable = std::exchange(on_writable_, nullptr);
    if (readable) readable();
    if (writable && *self != nullptr && !closed_) writable();
  }

  // OpenSSL reads and writes through the stream below.
  static const BIO_METHOD* bio_method() {
    static BIO_METHOD* const kMethod = [] {
      BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "w5xde stream");
      BIO_meth_set_read_ex(method, [](BIO* bio, char* data, std::size_t size, std::size_t* count) {
        return transfer_below<&Stream::read, BIO_FLAGS_READ>(bio, {data, size}, count);
      });
      BIO_meth_set_write_ex(method, [](BIO* bio, const char* data, std::size_t size, std::size_t* count) {
        return transfer_below<&Stream::write, BIO_FLAGS_WRITE>(bio, {const_cast<char*>(data), size}, count);
      });
      BIO_meth_set_ctrl(
          method, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH ? 1 : 0; });
      return method;
    }();
    return kMethod;
  }

  template <auto call, int retry>
  static int transfer_below(BIO* bio, const iovec& part, std::size_t* count) {
    auto* stream = static_cast<TlsStream*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    const Result<std::size_t> moved = (*stream->inner_.*call)({&part, 1});
    if (!moved) {
      stream->inner_error_ = moved.error().message;
      return 0;
    }
    *count = *moved;
    if (*count == 0) BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    return *count != 0 ? 1 : 0;
  }

  std::unique_ptr<Stream> inner_;
  SSL* ssl_;
  std::string inner_error_;       // of the last read or write below, in words
  std::optional<Error> failure_;  // what every later read and write answers
  bool closed_ = false;
  Wants reading_;  // what a read waits for
  Wants writing_;  // what a write waits for; in a handshake that can be a read
  Loop::Task on_readable_;
  Loop::Task on_writable_;
  std::shared_ptr<TlsStream*> self_;  // null once destroyed, for tasks that are on their way
};

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
  return std::make_unique<TlsStream>(std::move(stream), context_.get(), server_name_);
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
