#include "net/tcp.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/buffer.hpp>
#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "base/file.h"
#include "base/limits.h"
#include "net/socket_tuning.h"

namespace w5xde {

namespace {

using asio::ip::tcp;

// Waiting out a shortage of file descriptors: accepting again at once would spin.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

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

std::string name_of(const tcp::endpoint& endpoint) {
  return Address{endpoint.address().to_string(), endpoint.port()}.to_string();
}

class TcpStream final : public Stream {
 public:
  TcpStream(AsioLoop& loop, tcp::socket socket, const SocketOptions& options)
      : loop_(loop), state_(std::make_shared<State>(std::move(socket))) {
    asio::error_code ignored;  // a peer that is gone already has no endpoint
    const auto peer = state_->socket.remote_endpoint(ignored);
    peer_ = name_of(peer);
    TcpStream::tune(options);
    on_this_machine_ = peer.address().is_loopback();
    if (on_this_machine_) tune_loopback(state_->socket.native_handle());
  }
  ~TcpStream() override { TcpStream::close(); }
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  Result<std::size_t> read(std::span<const iovec> parts) override {
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

  Result<std::size_t> write(std::span<const iovec> parts) override {
    if (!state_->socket.is_open()) return disconnected("this side has closed the connection");
    const msghdr message = message_of(parts);
    for (;;) {
      const ssize_t count = ::sendmsg(state_->socket.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
      if (errno != EINTR) return broken(peer_, errno);
    }
  }

  void when_readable(Loop::Task task) override {
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

  void when_writable(Loop::Task task) override {
    loop_.assert_on_loop();
    state_->on_writable = std::move(task);
    if (std::exchange(state_->waiting_writable, true)) return;
    state_->socket.async_wait(tcp::socket::wait_write,
                              [&loop = loop_, state = state_](const asio::error_code&) {
                                state->waiting_writable = false;
                                if (const auto waiter = std::exchange(state->on_writable, nullptr))
                                  loop.run_task(waiter);
                              });
  }

  void finish_writing() override {
    asio::error_code ignored;
    state_->socket.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void close() override {
    state_->on_readable = nullptr;
    state_->on_writable = nullptr;
    asio::error_code ignored;
    state_->socket.close(ignored);
  }

  Loop& loop() override { return loop_; }
  std::string peer() const override { return peer_; }

  std::optional<TcpReport> tcp_report() const override {
    if (!state_->socket.is_open()) return std::nullopt;
    return report_socket(state_->socket.native_handle());
  }

  void tune(const SocketOptions& options) override { tune_socket(state_->socket.native_handle(), options); }

  void fit(const MeasuredLink& link) override {
    // Within the machine rates say how busy it is, and nothing of a link.
    if (on_this_machine_ || !state_->socket.is_open()) return;
    if (!limits_) limits_ = read_kernel_limits();
    fit_socket(state_->socket.native_handle(), link, *limits_);
  }

 private:
  // Shared with asio's handlers, which run even when the stream is gone.
  struct State {
    explicit State(tcp::socket s) : socket(std::move(s)) {}

    std::size_t take_held(std::span<const iovec> parts) {
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

    tcp::socket socket;
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

  Result<std::size_t> receive(std::span<const iovec> parts) {
    msghdr message = message_of(parts);
    for (;;) {
      const ssize_t count = ::recvmsg(state_->socket.native_handle(), &message, MSG_DONTWAIT);
      if (count > 0) return static_cast<std::size_t>(count);
      if (count == 0) return disconnected(peer_ + " has closed the connection");
      if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
      if (errno != EINTR) return broken(peer_, errno);
    }
  }

  AsioLoop& loop_;
  std::shared_ptr<State> state_;
  std::string peer_;
  bool on_this_machine_ = false;
  std::optional<KernelLimits> limits_;  // read when first needed
};

// However many peers come, files can be opened: a checkpoint, the database, a model. The kernel hands out the
// lowest number that is free, so a high one says that few are left.
bool is_of_the_reserve(int descriptor) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  const rlim_t reserve = std::clamp<rlim_t>(limit.rlim_cur / 8, 16, 64);
  return static_cast<rlim_t>(descriptor) + reserve >= limit.rlim_cur;
}

// Shared with asio's handlers, which run even when the listener is gone.
struct Accepting : std::enable_shared_from_this<Accepting> {
  Accepting(AsioLoop& l, tcp::acceptor a, SocketOptions o, Listener::Accepted f)
      : loop(l), acceptor(std::move(a)), options(o), accepted(std::move(f)) {}

  void accept_next() {
    acceptor.async_accept([self = shared_from_this()](const asio::error_code& error, tcp::socket socket) {
      if (!self->acceptor.is_open()) return;
      if (!error && is_of_the_reserve(socket.native_handle())) {
        socket.close();
        self->accept_next();
      } else if (!error) {
        self->accepted(std::make_unique<TcpStream>(self->loop, std::move(socket), self->options));
        // The callback may have destroyed the listener.
        if (self->acceptor.is_open()) self->accept_next();
      } else if (error == asio::error::connection_aborted) {
        self->accept_next();
      } else {
        self->loop.after(kAcceptPause, [self] {
          if (self->acceptor.is_open()) self->accept_next();
        });
      }
    });
  }

  AsioLoop& loop;
  tcp::acceptor acceptor;
  const SocketOptions options;
  const Listener::Accepted accepted;
  Address address;
};

class TcpListener final : public Listener {
 public:
  explicit TcpListener(std::shared_ptr<Accepting> accepting) : accepting_(std::move(accepting)) {}
  ~TcpListener() override {
    asio::error_code ignored;
    accepting_->acceptor.close(ignored);
  }
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  const Address& address() const override { return accepting_->address; }

 private:
  std::shared_ptr<Accepting> accepting_;
};

}  // namespace

Result<std::unique_ptr<Listener>> listen_tcp(AsioLoop& loop, const Address& address, SocketOptions options,
                                             Listener::Accepted accepted) {
  asio::error_code error;
  tcp::resolver resolver(loop.context());
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
  if (error) return invalid("listening on {}: {}", address.to_string(), error.message());
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(loop.context());
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Error{ErrorKind::system, fmt::format("listening on {}: {}", address.to_string(), error.message())};
  }
  auto state = std::make_shared<Accepting>(loop, std::move(acceptor), options, std::move(accepted));
  state->address = {address.host, state->acceptor.local_endpoint(error).port()};
  state->accept_next();
  return std::unique_ptr<Listener>(std::make_unique<TcpListener>(std::move(state)));
}

Duration retry_delay(const ConnectOptions& options, unsigned attempt, Random& random) {
  Duration delay = options.delay_first;
  for (unsigned i = 1; i < attempt && delay < options.delay_max; ++i) delay *= 2;
  delay = std::min(delay, options.delay_max);
  return delay - duration_of(seconds_of(delay) * random.unit() / 2);
}

namespace {

struct Connecting : std::enable_shared_from_this<Connecting> {
  Connecting(AsioLoop& l, ConnectOptions o, Random& r, std::function<void(Result<std::unique_ptr<Stream>>)> d)
      : loop(l),
        options(std::move(o)),
        random(r),
        done(std::move(d)),
        resolver(l.context()),
        socket(l.context()) {}

  void attempt_now() {
    ++attempt;
    resolver.async_resolve(options.address.host, std::to_string(options.address.port),
                           [self = shared_from_this()](const asio::error_code& error, const auto& found) {
                             if (error) return self->failed(error);
                             self->connect(found);
                           });
  }

  void connect(const tcp::resolver::results_type& found) {
    asio::async_connect(
        socket, found, [self = shared_from_this()](const asio::error_code& error, const tcp::endpoint&) {
          if (error) return self->failed(error);
          std::unique_ptr<Stream> stream =
              std::make_unique<TcpStream>(self->loop, std::move(self->socket), self->options.socket);
          self->done(std::move(stream));
        });
  }

  void failed(const asio::error_code& code) {
    Error error = disconnected("connecting to {}: {}", options.address.to_string(), code.message());
    if (options.attempts_max > 0 && attempt >= options.attempts_max) return done(std::move(error));
    const Duration delay = retry_delay(options, attempt, random);
    if (options.on_retry) options.on_retry(attempt, error, delay);
    loop.after(delay, [self = shared_from_this()] { self->attempt_now(); });
  }

  AsioLoop& loop;
  const ConnectOptions options;
  Random& random;
  const std::function<void(Result<std::unique_ptr<Stream>>)> done;
  tcp::resolver resolver;
  tcp::socket socket;
  unsigned attempt = 0;
};

}  // namespace

void connect_tcp(AsioLoop& loop, ConnectOptions options, Random& random,
                 std::function<void(Result<std::unique_ptr<Stream>>)> done) {
  std::make_shared<Connecting>(loop, std::move(options), random, std::move(done))->attempt_now();
}

}  // namespace w5xde
