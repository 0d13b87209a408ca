#include "net/tcp_stream.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/limits.h"

namespace w5xde {

namespace {

Error broken(const std::string& peer, int error_number) {
  return {ErrorKind::disconnected, system_error(peer, error_number).message};
}

msghdr message_of(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  return message;
}

// What is left of the parts when `skipped` bytes of them are filled; as many as fit into `rest`.
std::size_t parts_after(std::span<const iovec> parts, std::size_t skipped, std::span<iovec> rest) {
  std::size_t count = 0;
  for (const iovec& part : parts) {
    const std::size_t filled = std::min(part.iov_len, skipped);
    skipped -= filled;
    if (filled == part.iov_len || count == rest.size()) continue;
    rest[count++] = {static_cast<std::byte*>(part.iov_base) + filled, part.iov_len - filled};
  }
  return count;
}

std::string name_of(const asio::ip::tcp::endpoint& endpoint) {
  return Address{endpoint.address().to_string(), endpoint.port()}.to_string();
}

}  // namespace

// Shared with asio's handlers, which run even when the stream is gone.
struct TcpStream::State {
  explicit State(asio::ip::tcp::socket s) : socket(std::move(s)) {}

  std::size_t take_held(std::span<const iovec> parts);

  asio::ip::tcp::socket socket;
  // Waiting for bytes is reading the first few: asio then needs one system call where waiting alone would
  // need two, and a small frame is here when its reader is woken.
  std::array<std::byte, Limits::kHeldBytes> held;
  std::size_t held_begin = 0;
  std::size_t held_end = 0;
  Loop::Task on_readable;
  Loop::Task on_writable;
  bool waiting_readable = false;
  bool waiting_writable = false;
};

std::size_t TcpStream::State::take_held(std::span<const iovec> parts) {
  std::size_t taken = 0;
  for (const iovec& part : parts) {
    const std::size_t count = std::min(part.iov_len, held_end - held_begin);
    if (count == 0) break;
    std::memcpy(part.iov_base, held.data() + held_begin, count);
    held_begin += count;
    taken += count;
  }
  return taken;
}

TcpStream::TcpStream(AsioLoop& loop, asio::ip::tcp::socket socket, const SocketOptions& options)
    : loop_(loop), state_(std::make_shared<State>(std::move(socket))) {
  asio::error_code ignored;  // a peer that is gone already has no endpoint
  const auto peer = state_->socket.remote_endpoint(ignored);
  peer_ = name_of(peer);
  TcpStream::tune(options);
  on_this_machine_ = peer.address().is_loopback();
  if (on_this_machine_) tune_loopback(state_->socket.native_handle());
}

void TcpStream::tune(const SocketOptions& options) {
  tune_socket(state_->socket.native_handle(), options);
}

void TcpStream::fit(const MeasuredLink& link) {
  // Within the machine rates say how busy it is, and nothing of a link.
  if (on_this_machine_ || !state_->socket.is_open()) return;
  if (!limits_) limits_ = read_kernel_limits();
  fit_socket(state_->socket.native_handle(), link, *limits_);
}

TcpStream::~TcpStream() {
  TcpStream::close();
}

Result<std::size_t> TcpStream::read(std::span<const iovec> parts) {
  if (!state_->socket.is_open()) return disconnected("this side has closed the connection");
  if (state_->held_begin == state_->held_end) {
    // The bytes that are awaited may be in asio's hands already; to read on past them would change their
    // order.
    return state_->waiting_readable ? Result<std::size_t>(std::size_t{0}) : receive(parts);
  }
  // More can have come only if the held bytes were all that there was room for.
  const bool more = state_->held_end == state_->held.size();
  const std::size_t held = state_->take_held(parts);
  if (!more) return held;
  std::array<iovec, 4> rest{};
  const std::size_t count = parts_after(parts, held, rest);
  if (count == 0) return held;
  auto received = receive(std::span(rest).first(count));
  // The held bytes are good whatever came after them; an error is met again by the next read.
  return held + (received ? *received : 0);
}

Result<std::size_t> TcpStream::receive(std::span<const iovec> parts) {
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
  loop_.assert_on_loop();
  state_->on_readable = std::move(task);
  if (std::exchange(state_->waiting_readable, true)) return;
  const auto readable = [&loop = loop_, state = state_](const asio::error_code&, std::size_t count) {
    state->waiting_readable = false;
    // An error, or the end, is met again by the read that follows. After close() there is no task.
    state->held_end += count;
    if (const auto waiter = std::exchange(state->on_readable, nullptr)) loop.run_task(waiter);
  };
  if (state_->held_begin != state_->held_end) {
    asio::post(loop_.context(), [readable] { readable({}, 0); });
    return;
  }
  state_->held_begin = state_->held_end = 0;
  state_->socket.async_read_some(asio::buffer(state_->held), readable);
}

void TcpStream::when_writable(Loop::Task task) {
  loop_.assert_on_loop();
  state_->on_writable = std::move(task);
  if (std::exchange(state_->waiting_writable, true)) return;
  state_->socket.async_wait(asio::ip::tcp::socket::wait_write,
                            [&loop = loop_, state = state_](const asio::error_code&) {
                              state->waiting_writable = false;
                              if (const auto waiter = std::exchange(state->on_writable, nullptr))
                                loop.run_task(waiter);
                            });
}

void TcpStream::finish_writing() {
  asio::error_code ignored;
  state_->socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

void TcpStream::close() {
  state_->on_readable = nullptr;
  state_->on_writable = nullptr;
  asio::error_code ignored;
  state_->socket.close(ignored);
}

std::optional<TcpReport> TcpStream::tcp_report() const {
  if (!state_->socket.is_open()) return std::nullopt;
  return report_socket(state_->socket.native_handle());
}

}  // namespace w5xde
