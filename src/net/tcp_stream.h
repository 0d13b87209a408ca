// A TCP socket as a Stream. Only net/ includes this; others see tcp.h.
#pragma once

#include <asio/ip/tcp.hpp>
#include <memory>
#include <optional>
#include <string>

#include "net/asio_loop.h"
#include "net/socket_tuning.h"
#include "net/stream.h"
#include "net/tcp.h"

namespace w5xde {

class TcpStream final : public Stream {
 public:
  TcpStream(AsioLoop& loop, asio::ip::tcp::socket socket, const SocketOptions& options);
  ~TcpStream() override;
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  Result<std::size_t> read(std::span<const iovec> parts) override;
  Result<std::size_t> write(std::span<const iovec> parts) override;
  void when_readable(Loop::Task task) override;
  void when_writable(Loop::Task task) override;
  void finish_writing() override;
  void close() override;
  Loop& loop() override { return loop_; }
  std::string peer() const override { return peer_; }
  std::optional<TcpReport> tcp_report() const override;
  void tune(const SocketOptions& options) override;
  void fit(const MeasuredLink& link) override;

 private:
  struct State;
  Result<std::size_t> receive(std::span<const iovec> parts);

  AsioLoop& loop_;
  std::shared_ptr<State> state_;
  std::string peer_;
  bool on_this_machine_ = false;
  std::optional<KernelLimits> limits_;  // read when first needed
};

}  // namespace w5xde
