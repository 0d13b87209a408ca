#include "net/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>

#include <utility>

namespace w5xde {

namespace {

// Read from below this much at a time: a record is at most 16 KiB, and a system call for each would be many.
constexpr int kReadAheadBytes = 128 * 1024;

std::string reasons() {
  std::string text;
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (!text.empty()) text += ", ";
    text += reason != nullptr ? reason : "unknown";
  }
  return text;
}

}  // namespace

TlsStream::TlsStream(std::unique_ptr<Stream> inner, SSL_CTX* context, Side side,
                     const std::string& server_name)
    : inner_(std::move(inner)), ssl_(SSL_new(context)), self_(std::make_shared<TlsStream*>(this)) {
  BIO* bio = BIO_new(bio_method());
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_mode(ssl_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_set_read_ahead(ssl_, 1);
  SSL_set_default_read_buffer_len(ssl_, kReadAheadBytes);
  if (side == Side::server) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
    SSL_set_tlsext_host_name(ssl_, server_name.c_str());
    SSL_set1_host(ssl_, server_name.c_str());
    // The client speaks first, even if it only wants to read. An error here is found by the first read or
    // write.
    SSL_do_handshake(ssl_);
    ERR_clear_error();
  }
}

TlsStream::~TlsStream() {
  *self_ = nullptr;
  TlsStream::close();
  SSL_free(ssl_);
}

TlsStream::Wants TlsStream::wants_after(int result) {
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

Result<std::size_t> TlsStream::read(std::span<const iovec> parts) {
  return transfer(parts, reading_, SSL_read_ex);
}

Result<std::size_t> TlsStream::write(std::span<const iovec> parts) {
  return transfer(parts, writing_, SSL_write_ex);
}

template <class Call>
Result<std::size_t> TlsStream::transfer(std::span<const iovec> parts, Wants& wants, Call call) {
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

void TlsStream::when_readable(Loop::Task task) {
  on_readable_ = std::move(task);
  if (!reading_.read && !reading_.write) reading_.read = true;
  if (failure_ || (SSL_has_pending(ssl_) != 0 && !reading_.write)) {
    return wake_soon();
  }
  arm();
}

void TlsStream::when_writable(Loop::Task task) {
  on_writable_ = std::move(task);
  if (!writing_.read && !writing_.write) writing_.write = true;
  if (failure_) return wake_soon();
  arm();
}

void TlsStream::arm() {
  const bool read = (on_readable_ && reading_.read) || (on_writable_ && writing_.read);
  const bool write = (on_readable_ && reading_.write) || (on_writable_ && writing_.write);
  if (read) inner_->when_readable([this] { wake(); });
  if (write) inner_->when_writable([this] { wake(); });
}

void TlsStream::wake_soon() {
  loop().post([self = self_] {
    if (*self != nullptr) (*self)->wake();
  });
}

// Runs the waiting tasks: one that cannot go on yet asks again.
void TlsStream::wake() {
  const auto self = self_;
  auto readable = std::exchange(on_readable_, nullptr);
  auto writable = std::exchange(on_writable_, nullptr);
  if (readable) readable();
  if (writable && *self != nullptr && !closed_) writable();
}

// Tells the other side that nothing was cut off; whether it fits into the socket does not matter any more.
void TlsStream::finish_writing() {
  if (!failure_ && SSL_is_init_finished(ssl_) != 0) SSL_shutdown(ssl_);
  ERR_clear_error();
  inner_->finish_writing();
}

void TlsStream::close() {
  on_readable_ = nullptr;
  on_writable_ = nullptr;
  if (!closed_) TlsStream::finish_writing();
  closed_ = true;
  failure_ = disconnected("this side has closed the connection");
  inner_->close();
}

const BIO_METHOD* TlsStream::bio_method() {
  static BIO_METHOD* const kMethod = [] {
    BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "w5xde stream");
    BIO_meth_set_read_ex(method, bio_read);
    BIO_meth_set_write_ex(method, bio_write);
    BIO_meth_set_ctrl(
        method, [](BIO*, int command, long, void*) -> long { return command == BIO_CTRL_FLUSH ? 1 : 0; });
    return method;
  }();
  return kMethod;
}

int TlsStream::bio_read(BIO* bio, char* data, std::size_t size, std::size_t* count) {
  auto* stream = static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const iovec part{data, size};
  const auto read = stream->inner_->read({&part, 1});
  if (!read) {
    stream->inner_error_ = read.error().message;
    return 0;
  }
  *count = *read;
  if (*count == 0) BIO_set_retry_read(bio);
  return *count != 0 ? 1 : 0;
}

int TlsStream::bio_write(BIO* bio, const char* data, std::size_t size, std::size_t* count) {
  auto* stream = static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const iovec part{const_cast<char*>(data), size};
  const auto written = stream->inner_->write({&part, 1});
  if (!written) {
    stream->inner_error_ = written.error().message;
    return 0;
  }
  *count = *written;
  if (*count == 0) BIO_set_retry_write(bio);
  return *count != 0 ? 1 : 0;
}

}  // namespace w5xde
