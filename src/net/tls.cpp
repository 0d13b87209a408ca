#include "net/tls.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <utility>

#include "base/errors.h"
#include "wire/frame_writer.h"
#include "wire/messages.h"

namespace w5xde {

namespace {

// Read from below this much at a time: a record is at most 16 KiB, and a system call for each would be many.
constexpr int kReadAheadBytes = 128 * 1024;

// What a stranger may make us hold of its certificates.
constexpr long kCertificateBytesMax = 16 * 1024;

// Both ends give the exporter this label (RFC 8446, 7.5).
constexpr std::string_view kExporterLabel = "EXPORTER-w5xde-proof";

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

// Whether the other side has refused this one: its alert says why. It may come behind the handshake, which a
// client ends first. One about a damaged record is no refusal.
bool is_refusal(unsigned long code) {
  return ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) > SSL_AD_REASON_OFFSET &&
         ERR_GET_REASON(code) != SSL_R_SSLV3_ALERT_BAD_RECORD_MAC;
}

class TlsStream final : public Stream {
 public:
  // What a client insists on of its server.
  struct Server {
    std::string name;                   // empty: any
    std::optional<Digest> fingerprint;  // none: any
  };

  // A server wants none.
  TlsStream(std::unique_ptr<Stream> inner, SSL_CTX* context, const std::optional<Server>& wanted)
      : inner_(std::move(inner)),
        ssl_(SSL_new(context)),
        is_server_(!wanted),
        wanted_(wanted ? wanted->fingerprint : std::nullopt),
        self_(std::make_shared<TlsStream*>(this)) {
    BIO* bio = BIO_new(bio_method());
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_, bio, bio);
    SSL_set_mode(ssl_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_set_read_ahead(ssl_, 1);
    SSL_set_default_read_buffer_len(ssl_, kReadAheadBytes);
    SSL_set_app_data(ssl_, this);
    if (is_server_) {
      SSL_set_accept_state(ssl_);
      return;
    }
    SSL_set_connect_state(ssl_);
    if (!wanted->name.empty()) {
      SSL_set_tlsext_host_name(ssl_, wanted->name.c_str());
      SSL_set1_host(ssl_, wanted->name.c_str());
    }
    // The client speaks first, even if it only wants to read. An error is kept for the first read or write.
    if (const int result = SSL_do_handshake(ssl_); result != 1) (void)wants_after(result);
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

  std::string peer_identity() const override {
    const X509* certificate = is_proven() ? SSL_get0_peer_certificate(ssl_) : nullptr;
    return certificate != nullptr ? identity_of(certificate) : std::string();
  }
  std::optional<SessionSecret> session_secret() const override {
    SessionSecret secret{};
    if (!is_proven() ||
        SSL_export_keying_material(ssl_, reinterpret_cast<unsigned char*>(secret.data()), secret.size(),
                                   kExporterLabel.data(), kExporterLabel.size(), nullptr, 0, 0) != 1)
      return std::nullopt;
    return secret;
  }

  // OpenSSL asks this about the certificate of a server that is known by its fingerprint. The handshake
  // proves that the server has the key too.
  static int is_wanted(X509_STORE_CTX* store, void*) {
    const auto* ssl =
        static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
    const auto* stream = static_cast<const TlsStream*>(SSL_get_app_data(ssl));
    const X509* certificate = X509_STORE_CTX_get0_cert(store);
    const bool fits = certificate != nullptr && stream->wanted_ == fingerprint_of(certificate);
    X509_STORE_CTX_set_error(store, fits ? X509_V_OK : X509_V_ERR_APPLICATION_VERIFICATION);
    return fits ? 1 : 0;
  }

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
        failure_ = why_it_failed();
    }
    ERR_clear_error();
    // Waiting tasks run at once and find the failure.
    return {.read = true, .write = true};
  }

  bool is_proven() const { return !failure_ && SSL_is_init_finished(ssl_) != 0; }

  Error why_it_failed() {
    if (speaks_plain_) return told_of_tls();
    if (!inner_error_.empty()) return disconnected(inner_error_);
    if (SSL_get_verify_result(ssl_) == X509_V_ERR_APPLICATION_VERIFICATION)
      return incompatible(
          "{} has another certificate than the invitation names: it is another coordinator, or somebody is "
          "in "
          "between; ask for a new invitation",
          peer());
    const bool refused = SSL_is_init_finished(ssl_) == 0 || is_refusal(ERR_peek_error());
    std::string text = "TLS with " + peer() + ": " + reasons();
    if (const long wrong = SSL_get_verify_result(ssl_); wrong != X509_V_OK)
      text += fmt::format(" ({})", X509_verify_cert_error_string(wrong));
    // Behind the handshake, bytes that do not fit are damaged on their way.
    return refused ? incompatible(text) : corrupt(text);
  }

  // The other side's first bytes are a frame's, not a handshake's.
  Error told_of_tls() {
    if (!is_server_)
      return incompatible(
          "{} speaks without TLS, and the invitation is for TLS; the port is another coordinator's, or it "
          "was "
          "started with --insecure: then join HOST:PORT",
          peer());
    Head head;
    encode(Goodbye{ErrorKind::incompatible,
                   "this coordinator speaks TLS only; come with an invitation, w5xde://HOST:PORT/…, which "
                   "`w5xde invite RUN` prints where the run is"},
           head);
    FrameWriter writer(Limits::stranger());
    // If it is not taken at once, the peer learns from the end of the stream.
    if (writer.push({.type = FrameType::goodbye, .head = head}).ok()) (void)inner_->write(writer.stage());
    return incompatible("{} speaks without TLS; it must come with an invitation", peer());
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
    if (*count != 0 && retry == BIO_FLAGS_READ && !std::exchange(stream->has_read_, true))
      stream->speaks_plain_ = *static_cast<const std::uint8_t*>(part.iov_base) == kFrameMagic[0];
    return *count != 0 && !stream->speaks_plain_ ? 1 : 0;
  }

  std::unique_ptr<Stream> inner_;
  SSL* ssl_;
  const bool is_server_;
  const std::optional<Digest> wanted_;  // a server's certificate
  bool has_read_ = false;               // anything from below
  bool speaks_plain_ = false;           // the other side
  std::string inner_error_;             // of the last read or write below, in words
  std::optional<Error> failure_;        // what every later read and write answers
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
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_cert_list(context.get(), kCertificateBytesMax);
  return context;
}

int is_any(X509_STORE_CTX* store, void*) {
  X509_STORE_CTX_set_error(store, X509_V_OK);
  return 1;
}

Status show(SSL_CTX* context, const Identity& self) {
  if (SSL_CTX_use_certificate_chain_file(context, self.certificate_file().c_str()) != 1)
    return openssl_error("TLS certificate " + self.certificate_file().string());
  if (SSL_CTX_use_PrivateKey_file(context, self.key_file().c_str(), SSL_FILETYPE_PEM) != 1)
    return openssl_error("TLS key " + self.key_file().string());
  return {};
}

Status trust(SSL_CTX* context, const std::filesystem::path& authorities) {
  if (SSL_CTX_load_verify_file(context, authorities.c_str()) == 1) return {};
  return openssl_error("TLS authorities " + authorities.string());
}

}  // namespace

Result<TlsContext> TlsContext::server(const Identity& self, const std::filesystem::path& authorities) {
  auto context = new_context(TLS_server_method());
  W5XDE_CHECK(show(context.get(), self));
  if (authorities.empty()) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_cert_verify_callback(context.get(), is_any, nullptr);
  } else {
    W5XDE_CHECK(trust(context.get(), authorities));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return TlsContext(Side::server, std::move(context));
}

Result<TlsContext> TlsContext::client(const Identity& self, const Digest& server_fingerprint) {
  auto context = new_context(TLS_client_method());
  W5XDE_CHECK(show(context.get(), self));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context.get(), TlsStream::is_wanted, nullptr);
  TlsContext client(Side::client, std::move(context));
  client.server_fingerprint_ = server_fingerprint;
  return client;
}

Result<TlsContext> TlsContext::client(const std::filesystem::path& authorities, std::string server_name,
                                      const Identity* self) {
  if (server_name.empty()) return invalid("a TLS client needs the name of its server");
  auto context = new_context(TLS_client_method());
  W5XDE_CHECK(trust(context.get(), authorities));
  if (self != nullptr) W5XDE_CHECK(show(context.get(), *self));
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  TlsContext client(Side::client, std::move(context));
  client.server_name_ = std::move(server_name);
  return client;
}

std::unique_ptr<Stream> TlsContext::wrap(std::unique_ptr<Stream> stream) const {
  std::optional<TlsStream::Server> wanted;
  if (side_ == Side::client) wanted = {server_name_, server_fingerprint_};
  return std::make_unique<TlsStream>(std::move(stream), context_.get(), wanted);
}

}  // namespace w5xde
