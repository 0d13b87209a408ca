#include "sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <string_view>

#include "harness.h"
#include "wire/messages.h"

namespace w5xde::bench {

namespace {

[[noreturn]] void give_up(const std::string& why) {
  fmt::print(stderr, "bench: {}\n", why);
  std::exit(1);
}

constexpr std::uint64_t kStreamQueueBytes = 1 * kMiB;

}  // namespace

End::End(std::size_t payload_bytes_max)
    : outgoing_(payload_bytes_max, std::byte{1}), landing_(payload_bytes_max) {}

End::~End() {
  stop();
  if (connection_) connection_->detach();
}

void End::stop() {
  loop_.stop();
  if (thread_.joinable()) thread_.join();
}

void End::connect(End& client, End& server) {
  Random random(1);
  std::unique_ptr<Stream> accepted;
  auto listener = listen_tcp(server.loop_, {"127.0.0.1", 0}, {},
                             [&](std::unique_ptr<Stream> stream) { accepted = std::move(stream); });
  if (!listener) give_up(listener.error().message);
  std::unique_ptr<Stream> connected;
  connect_tcp(client.loop_, {.address = (*listener)->address()}, random,
              [&](Result<std::unique_ptr<Stream>> stream) {
                if (!stream) give_up(stream.error().message);
                connected = std::move(stream).value();
              });
  client.loop_.run_until([&] { return connected != nullptr; });
  server.loop_.run_until([&] { return accepted != nullptr; });
  client.connection_ = Connection::start(std::move(connected), client, Limits());
  server.connection_ = Connection::start(std::move(accepted), server, Limits());
  const auto start = [](End& end, unsigned core) {
    end.thread_ = std::thread([&end, core] {
      stay_on_core(core);
      end.loop_.run();
    });
  };
  start(client, 0);
  start(server, 1);
}

void End::run(const std::function<void(End&)>& task) {
  std::promise<void> done;
  loop_.post([&] {
    task(*this);
    done.set_value();
  });
  done.get_future().wait();
}

void End::wait_for(std::uint64_t frames) {
  wanted_ = frames;
  for (std::uint64_t seen = frames_; seen < frames; seen = frames_) frames_.wait(seen);
}

void End::send(std::size_t payload_bytes) {
  const TensorView view(Bytes(outgoing_).first(payload_bytes), DType::f32,
                        Shape{static_cast<std::int64_t>(payload_bytes / sizeof(float))});
  head_.clear();
  encode(Tensors{{TensorDescriptor::of(view)}}, head_);
  const auto sent = connection_->send({.type = FrameType::tensors, .head = head_, .payload = {&view, 1}});
  if (!sent.ok()) give_up(sent.error().message);
}

void End::stream(std::uint64_t frames, std::size_t payload_bytes) {
  stream_left_ = frames;
  stream_bytes_ = payload_bytes;
  drained();
}

void End::drained() {
  for (; stream_left_ > 0 && connection_->queued_bytes() < kStreamQueueBytes; --stream_left_)
    send(stream_bytes_);
}

Result<MutableBytes> End::place(const FrameHeader& header, Bytes head) {
  W5XDE_TRY(const Tensors tensors, decode_tensors(head, Limits()));
  if (payload_bytes_of(tensors.tensors) != header.payload_bytes) return corrupt("sizes do not fit");
  return MutableBytes(landing_).first(header.payload_bytes);
}

Status End::received(const FrameHeader& header, Bytes, MutableBytes) {
  if (echo || rounds_left > 0) send(header.payload_bytes);
  if (rounds_left > 0) --rounds_left;
  // Woken once, not for every frame: there are two cores and three threads.
  if (++frames_ == wanted_) frames_.notify_all();
  return {};
}

void End::closed(const Error& reason) {
  give_up("a connection closed: " + reason.to_string());
}

BareSockets::BareSockets() {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  near = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::connect(near, reinterpret_cast<sockaddr*>(&address), size) != 0) {
    give_up("no loopback sockets");
  }
  far = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  const int on = 1;
  // As ours are on loopback: a system's default may pace, where there is nothing to pace for.
  constexpr std::string_view kControl = "reno";
  for (const int fd : {near, far}) {
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kControl.data(), kControl.size());
  }
}

BareSockets::~BareSockets() {
  ::close(near);
  ::close(far);
}

void bare_send(int fd, const std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (count <= 0) give_up("a bare send failed");
    at += static_cast<std::size_t>(count);
  }
}

void bare_receive(int fd, std::vector<std::byte>& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::recv(fd, bytes.data() + at, bytes.size() - at, 0);
    if (count <= 0) give_up("a bare recv failed");
    at += static_cast<std::size_t>(count);
  }
}

}  // namespace w5xde::bench
