// A stream that writes down what is asked of it, for tests of how a connection uses its socket.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "net/stream.h"

namespace w5xde {

// What went through a WatchedStream. Outlives it, so that a test can look when the connection is gone.
struct Watch {
  std::vector<std::size_t> reads;                // the room of each read
  std::vector<std::vector<std::size_t>> writes;  // the parts of each write
  std::vector<SocketOptions> tunings;
  std::vector<MeasuredLink> fittings;
  std::size_t reports = 0;       // how often the kernel was asked
  std::optional<TcpReport> tcp;  // what it is to answer, if not what it knows
};

// Hands everything on to another stream.
class WatchedStream final : public Stream {
 public:
  WatchedStream(std::unique_ptr<Stream> inner, Watch& watch) : inner_(std::move(inner)), watch_(watch) {}

  Result<std::size_t> read(std::span<const iovec> parts) override;
  Result<std::size_t> write(std::span<const iovec> parts) override;
  void when_readable(Loop::Task task) override { inner_->when_readable(std::move(task)); }
  void when_writable(Loop::Task task) override { inner_->when_writable(std::move(task)); }
  void finish_writing() override { inner_->finish_writing(); }
  void close() override { inner_->close(); }
  Loop& loop() override { return inner_->loop(); }
  std::string peer() const override { return inner_->peer(); }
  bool encrypted() const override { return inner_->encrypted(); }
  std::optional<TcpReport> tcp_report() const override;
  void tune(const SocketOptions& options) override;
  void fit(const MeasuredLink& link) override;

 private:
  std::unique_ptr<Stream> inner_;
  Watch& watch_;
};

}  // namespace w5xde
