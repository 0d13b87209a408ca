// A server as small as one can be on Connection: it asks for a hello first, then echoes every frame.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "net/asio_loop.h"
#include "net/connection.h"
#include "net/tcp.h"

namespace w5xde {

// The frames that a client must open with.
std::vector<std::byte> hello_frame();

class EchoServer {
 public:
  explicit EchoServer(AsioLoop& loop);
  ~EchoServer();

  const Address& address() const { return listener_->address(); }
  std::size_t sessions() const { return sessions_.size(); }
  std::uint64_t accepted() const { return accepted_; }
  std::uint64_t echoed() const { return echoed_; }
  // How many connections ended for each kind of reason.
  const std::unordered_map<ErrorKind, std::uint64_t>& endings() const { return endings_; }

 private:
  class Session;
  void ended(Session& session, const Error& reason);

  AsioLoop& loop_;
  std::unique_ptr<Listener> listener_;
  std::unordered_map<Session*, std::unique_ptr<Session>> sessions_;
  std::unordered_map<ErrorKind, std::uint64_t> endings_;
  std::uint64_t accepted_ = 0;
  std::uint64_t echoed_ = 0;
};

}  // namespace w5xde
