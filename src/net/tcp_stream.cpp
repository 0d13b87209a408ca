#include "net/tcp_stream.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "net/tcp_info.h"

namespace w5xde {

namespace {

template <class T>
T option_of(int fd, int level, int name) {
  T value{};
  socklen_t size = sizeof value;
  return ::getsockopt(fd, level, name, &value, &size) == 0 ? value : T{};
}

void set_option(int fd, int level, int name, int value) {
  // A refusal is no error: training works without it, and the report says what was granted.
  (void)::setsockopt(fd, level, name, &value, sizeof value);
}

void set_buffer(int fd, int name, int force_name, std::uint64_t bytes) {
  if (bytes == 0) return;
  const int value = static_cast<int>(std::min<std::uint64_t>(bytes, 1u << 30));
  // Root may go past net.core.[rw]mem_max; others get what that allows.
  if (::setsockopt(fd, SOL_SOCKET, force_name, &value, sizeof value) != 0)
    set_option(fd, SOL_SOCKET, name, value);
}

void tune(int fd, const SocketOptions& options) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, options.no_delay ? 1 : 0);
  set_option(fd, IPPROTO_TCP, TCP_QUICKACK, options.quick_ack ? 1 : 0);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, options.keep_alive ? 1 : 0);
  set_buffer(fd, SO_SNDBUF, SO_SNDBUFFORCE, options.send_buffer_bytes);
  set_buffer(fd, SO_RCVBUF, SO_RCVBUFFORCE, options.receive_buffer_bytes);
}

Error broken(const std::string& peer, int error_number) {
  return {ErrorKind::disconnected, system_error(peer, error_number).message};
}

msghdr message_of(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return message;
}

std::string name_of(const asio::ip::tcp::endpoint& endpoint) {
  return Address{endpoint.address().to_string(), endpoint.port()}.to_string();
}

}  // namespace

// Shared with asio's handlers, which run even when the stream is gone.
struct TcpStream::State {
  explicit State(asio::ip::tcp::socket s) : socket(std::move(s)) {}
  asio::ip::tcp::socket socket;
  Loop::Task on_readable;
  Loop::Task on_writable;
  bool waiting_readable = false;
  bool waiting_writable = false;
};

TcpStream::TcpStream(AsioLoop& loop, asio::ip::tcp::socket socket, const SocketOptions& options)
    : loop_(loop), state_(std::make_shared<State>(std::move(socket))) {
  asio::error_code ignored;
  peer_ = name_of(state_->socket.remote_endpoint(ignored));
  tune(state_->socket.native_handle(), options);
}

TcpStream::~TcpStream() {
  TcpStream::close();
}

Result<std::size_t> TcpStream::read(std::span<const iovec> parts) {
  if (!state_->socket.is_open()) return disconnected("this side has closed the connection");
  msghdr message = message_of(parts);
  for (;;) {
    const ssize_t count = ::recvmsg(state_->socket.native_handle(), &message, MSG_DONTWAIT);
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0) return disconnected(peer_ + " has closed the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno != EINTR) return broken(peer_, errno);
  }
}

Result<std::size_t> TcpStream::write(std::span<const iovec> parts) {
  if (!state_->socket.is_open()) return disconnected("this side has closed the connection");
  const msghdr message = message_of(parts);
  for (;;) {
    const ssize_t count = ::sendmsg(state_->socket.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno != EINTR) return broken(peer_, errno);
  }
}

void TcpStream::when_readable(Loop::Task task) {
  state_->on_readable = std::move(task);
  wait(true);
}

void TcpStream::when_writable(Loop::Task task) {
  state_->on_writable = std::move(task);
  wait(false);
}

void TcpStream::wait(bool readable) {
  loop_.assert_on_loop();
  bool& waiting = readable ? state_->waiting_readable : state_->waiting_writable;
  if (std::exchange(waiting, true)) return;
  using asio::ip::tcp;
  state_->socket.async_wait(readable ? tcp::socket::wait_read : tcp::socket::wait_write,
                            [state = state_, readable](const asio::error_code&) {
                              (readable ? state->waiting_readable : state->waiting_writable) = false;
                              // After close() there is no task; errors are found by the read or write that
                              // follows.
                              auto& waiter = readable ? state->on_readable : state->on_writable;
                              if (auto task = std::exchange(waiter, nullptr)) task();
                            });
}

void TcpStream::close() {
  state_->on_readable = nullptr;
  state_->on_writable = nullptr;
  asio::error_code ignored;
  state_->socket.close(ignored);
}

std::optional<TcpReport> TcpStream::tcp_report() const {
  if (!state_->socket.is_open()) return std::nullopt;
  const int fd = state_->socket.native_handle();
  TcpReport report;
  report.no_delay = option_of<int>(fd, IPPROTO_TCP, TCP_NODELAY) != 0;
  report.quick_ack = option_of<int>(fd, IPPROTO_TCP, TCP_QUICKACK) != 0;
  report.keep_alive = option_of<int>(fd, SOL_SOCKET, SO_KEEPALIVE) != 0;
  report.send_buffer_bytes = static_cast<std::uint64_t>(option_of<int>(fd, SOL_SOCKET, SO_SNDBUF));
  report.receive_buffer_bytes = static_cast<std::uint64_t>(option_of<int>(fd, SOL_SOCKET, SO_RCVBUF));
  read_tcp_info(fd, report);
  return report;
}

}  // namespace w5xde
