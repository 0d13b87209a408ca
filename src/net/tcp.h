#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/random.h"
#include "net/address.h"
#include "net/asio_loop.h"
#include "net/stream.h"
#include "w5xde/result.h"

namespace w5xde {

// Port 0 takes any free one, and address() tells which. When few of the process's file descriptors are left,
// connections are closed as soon as they come. Loop thread only.
Result<std::unique_ptr<Listener>> listen_tcp(AsioLoop& loop, const Address& address, SocketOptions options,
                                             Listener::Accepted accepted);

struct ConnectOptions {
  Address address;
  SocketOptions socket;
  // Attempts are spaced by a delay that doubles up to the maximum; each is shortened by a random part of up
  // to a half, so that nodes that lost the same coordinator do not all come back in the same instant.
  unsigned attempts_max = 5;  // 0: without end
  Duration delay_first = std::chrono::milliseconds(100);
  Duration delay_max = std::chrono::seconds(10);
  std::function<void(unsigned attempt, const Error& error, Duration delay)> on_retry;
};

// Before which delay the attempt after number `attempt` (from 1) is made.
Duration retry_delay(const ConnectOptions& options, unsigned attempt, Random& random);

// Connects; `done` gets the stream or the last error. `random` and `loop` must outlive the attempt. Loop
// thread only.
void connect_tcp(AsioLoop& loop, ConnectOptions options, Random& random,
                 std::function<void(Result<std::unique_ptr<Stream>>)> done);

}  // namespace w5xde
