// TLS over another Stream. Only net/ includes this; others see tls.h.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "net/stream.h"

namespace w5xde {

class TlsStream final : public Stream {
 public:
  enum class Side { server, client };

  TlsStream(std::unique_ptr<Stream> inner, SSL_CTX* context, Side side, const std::string& server_name);
  ~TlsStream() override;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Result<std::size_t> read(std::span<const iovec> parts) override;
  Result<std::size_t> write(std::span<const iovec> parts) override;
  void when_readable(Loop::Task task) override;
  void when_writable(Loop::Task task) override;
  void finish_writing() override;
  void close() override;
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
  Wants wants_after(int result);
  // Moves the parts with SSL_read_ex or SSL_write_ex.
  template <class Call>
  Result<std::size_t> transfer(std::span<const iovec> parts, Wants& wants, Call call);
  void arm();
  void wake();
  void wake_soon();

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

  static const BIO_METHOD* bio_method();
  static int bio_read(BIO* bio, char* data, std::size_t size, std::size_t* count);
  static int bio_write(BIO* bio, const char* data, std::size_t size, std::size_t* count);
};

}  // namespace w5xde
