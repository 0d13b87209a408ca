#include "net/tcp.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <utility>

#include "net/tcp_stream.h"

namespace w5xde {

namespace {

using asio::ip::tcp;

// Waiting out a shortage of file descriptors: accepting again at once would spin.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);

// However many peers come, files can be opened: a checkpoint, the database, a model. The kernel hands out the
// lowest number that is free, so a high one says that few are left.
bool is_of_the_reserve(int descriptor) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  const rlim_t reserve = std::clamp<rlim_t>(limit.rlim_cur / 8, 16, 64);
  return static_cast<rlim_t>(descriptor) + reserve >= limit.rlim_cur;
}

}  // namespace

struct TcpListener::State : std::enable_shared_from_this<TcpListener::State> {
  State(AsioLoop& l, tcp::acceptor a, SocketOptions o, Accepted f)
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
  const Accepted accepted;
  Address address;
};

Result<std::unique_ptr<TcpListener>> TcpListener::listen(AsioLoop& loop, const Address& address,
                                                         SocketOptions options, Accepted accepted) {
  asio::error_code error;
  tcp::resolver resolver(loop.context());
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
  if (error) return invalid(fmt::format("listening on {}: {}", address.to_string(), error.message()));
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(loop.context());
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Error{ErrorKind::system, fmt::format("listening on {}: {}", address.to_string(), error.message())};
  }
  auto state = std::make_shared<State>(loop, std::move(acceptor), options, std::move(accepted));
  state->address = {address.host, state->acceptor.local_endpoint(error).port()};
  state->accept_next();
  return std::unique_ptr<TcpListener>(new TcpListener(std::move(state)));
}

TcpListener::TcpListener(std::shared_ptr<State> state) : state_(std::move(state)) {}

TcpListener::~TcpListener() {
  asio::error_code ignored;
  state_->acceptor.close(ignored);
}

const Address& TcpListener::address() const {
  return state_->address;
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
    Error error =
        disconnected(fmt::format("connecting to {}: {}", options.address.to_string(), code.message()));
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
