#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/address.h"
#include "net/loop.h"
#include "net/socket_fit.h"
#include "w5xde/result.h"

namespace w5xde {

// What the original WIIIIIDE found worth tuning.
struct SocketOptions {
  bool no_delay = true;
  bool quick_ack = true;
  bool keep_alive = true;
  std::uint64_t send_buffer_bytes = 0;     // 0: as the link needs
  std::uint64_t receive_buffer_bytes = 0;  // likewise
  std::uint64_t receive_chunk_bytes = 0;   // one read takes no more; 0: what there is room for
  bool combined_send = true;               // a frame's parts in one call, not one each

  // A size that is set is not fitted to the link.
  bool fitted() const { return send_buffer_bytes == 0 && receive_buffer_bytes == 0; }

  bool operator==(const SocketOptions&) const = default;
};

// What the kernel granted of what was asked for, and what it has measured (TCP_INFO).
struct TcpReport {
  bool no_delay = false;
  bool quick_ack = false;
  bool keep_alive = false;
  std::uint64_t send_buffer_bytes = 0;         // twice what was asked for, within the kernel's limit
  std::uint64_t receive_buffer_bytes = 0;      // likewise
  std::string congestion_control;              // "bbr"
  Duration round_trip_min = Duration::zero();  // without delayed acknowledgements and queues
  double delivery_bytes_per_second = 0;
  bool sender_limited = false;           // that rate is of a sender that had no more to send, not of the link
  std::uint64_t bytes_acknowledged = 0;  // by the other side's kernel
};

using SessionSecret = std::array<std::byte, 32>;

// Bytes in both directions: TCP, TLS over any other stream, or memory. Nothing blocks: read and write do what
// can be done now, and when_readable and when_writable tell when it is worth trying again. Loop thread only.
class Stream {
 public:
  virtual ~Stream() = default;

  // Reads what is there into the parts, in order, and returns how much. Less than there was room for: no more
  // has come yet (so no second call is needed to find that out). The end of the stream is an error,
  // `disconnected`.
  virtual Result<std::size_t> read(std::span<const iovec> parts) = 0;

  // Writes as much of the parts as is taken now; 0 when nothing is. The next call begins with the bytes that
  // were not taken, in a first part at least as long as they were offered in: TLS may have them encrypted
  // already.
  virtual Result<std::size_t> write(std::span<const iovec> parts) = 0;

  // Runs the task once, from the loop, when a read (write) may get further; soon, if that is already so. One
  // task in each direction: a new one takes the old one's place. close() and the destructor drop both.
  virtual void when_readable(Loop::Task task) = 0;
  virtual void when_writable(Loop::Task task) = 0;

  // Nothing more will be written; the other side reads the end of the stream after what was. Reading goes on.
  virtual void finish_writing() = 0;
  // Ends both directions. Later reads and writes fail. Bytes that are unread then, or come later, may cost
  // the other side what it has not read yet.
  virtual void close() = 0;

  virtual Loop& loop() = 0;
  virtual std::string peer() const = 0;  // "127.0.0.1:5555", for logs
  virtual bool encrypted() const { return false; }
  // Once the handshake of TLS is done: the key that the peer has proven to have (net/identity.h), 64
  // hexadecimal digits; empty where it has shown none.
  virtual std::string peer_identity() const { return {}; }
  // Likewise: what both ends of this TLS session know and nobody else can (RFC 8446, 7.5).
  virtual std::optional<SessionSecret> session_secret() const { return std::nullopt; }
  // What the kernel knows of the link, where there is a kernel.
  virtual std::optional<TcpReport> tcp_report() const { return std::nullopt; }
  // Where there is a socket.
  virtual void tune(const SocketOptions&) {}
  // Where there is a link that the kernel does not fit the socket to by itself.
  virtual void fit(const MeasuredLink&) {}
};

// Hands each new connection to its callback, until it is destroyed. TCP, or simulated. Loop thread only.
class Listener {
 public:
  using Accepted = std::function<void(std::unique_ptr<Stream>)>;

  virtual ~Listener() = default;
  virtual const Address& address() const = 0;
};

// Makes a listener that hands connections to `accepted`, from the loop.
using Listen = std::function<Result<std::unique_ptr<Listener>>(Listener::Accepted accepted)>;

}  // namespace w5xde
