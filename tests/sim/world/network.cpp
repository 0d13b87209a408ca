#include "sim/world/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "base/bytes.h"

namespace w5xde {

// One direction.
struct SimLink::Pipe {
  struct Chunk {
    Instant arrival;
    std::vector<std::byte> bytes;
    bool end = false;  // of the stream
  };

  std::size_t unread() const { return arrived.size() - read; }
  bool readable() const { return unread() > 0 || ended || broken; }

  SimProcess* writer = nullptr;
  SimProcess* reader = nullptr;
  std::deque<Chunk> flying;
  std::size_t flying_bytes = 0;
  std::vector<std::byte> arrived;
  std::size_t read = 0;  // of what arrived
  bool ended = false;    // the reader has got the end
  bool broken = false;   // nothing goes any more
  bool armed = false;
  Instant free_at{};  // when the link has taken what was sent before
  Instant last_arrival{}, blocked_until{};
  double bytes_per_second = 0;
  unsigned flips = 0;
  Loop::Task on_readable, on_writable;
};

class SimStream final : public Stream {
 public:
  SimStream(std::shared_ptr<SimLink> link, SimProcess& process, SimLink::Pipe& in, SimLink::Pipe& out,
            std::string peer)
      : link_(std::move(link)), process_(process), in_(in), out_(out), peer_(std::move(peer)) {
    in_.reader = out_.writer = &process;
  }
  ~SimStream() override { close(); }
  SimStream(const SimStream&) = delete;
  SimStream& operator=(const SimStream&) = delete;

  Result<std::size_t> read(std::span<const iovec> parts) override {
    if (closed_) return disconnected("this side has closed the stream");
    const std::size_t count = link_->take(in_, parts);
    if (count == 0 && in_.unread() == 0 && in_.broken) return disconnected("the connection was reset");
    if (count == 0 && in_.unread() == 0 && in_.ended)
      return disconnected("the other side has closed the stream");
    return count;
  }

  Result<std::size_t> write(std::span<const iovec> parts) override {
    if (closed_ || finished_) return disconnected("this side has closed the stream");
    if (out_.broken) return disconnected("the connection was reset");
    return link_->give(out_, parts);
  }

  void when_readable(Loop::Task task) override {
    in_.on_readable = std::move(task);
    if (in_.readable()) link_->wake_reader(in_);
  }
  void when_writable(Loop::Task task) override {
    out_.on_writable = std::move(task);
    if (out_.broken || link_->has_room(out_)) link_->wake_writer(out_);
  }

  void finish_writing() override {
    if (!std::exchange(finished_, true)) link_->fly(out_, {}, true);
  }

  void close() override {
    if (std::exchange(closed_, true)) return;
    in_.on_readable = nullptr;
    out_.on_writable = nullptr;
    in_.reader = out_.writer = nullptr;
    if (link_->silent_) return;
    // Bytes that nobody will read reset the connection, and that may overtake what was said last.
    if (in_.unread() > 0 && link_->random_.below(2) == 0) link_->break_off(out_);
    finish_writing();
    link_->time_.at(link_->time_.now() + link_->delay(), nullptr,
                    [link = link_, &in = in_] { link->break_off(in); });
  }

  Loop& loop() override { return process_; }
  std::string peer() const override { return peer_; }

 private:
  std::shared_ptr<SimLink> link_;
  SimProcess& process_;
  SimLink::Pipe& in_;
  SimLink::Pipe& out_;
  std::string peer_;
  bool closed_ = false, finished_ = false;
};

SimLink::SimLink(SimTime& time, const SimLinkShape& shape, std::uint64_t seed, SimTrace trace)
    : time_(time),
      shape_(shape),
      random_(seed),
      trace_(std::move(trace)),
      there_(std::make_unique<Pipe>()),
      back_(std::make_unique<Pipe>()) {
  there_->bytes_per_second = back_->bytes_per_second = shape.bytes_per_second;
}

SimLink::~SimLink() = default;

std::shared_ptr<SimLink> SimLink::make(SimTime& time, const SimLinkShape& shape, std::uint64_t seed,
                                       SimTrace trace) {
  return std::shared_ptr<SimLink>(new SimLink(time, shape, seed, std::move(trace)));
}

std::pair<std::unique_ptr<Stream>, std::unique_ptr<Stream>> SimLink::ends(SimProcess& near, SimProcess& far) {
  const auto peer = [this](const SimProcess& process) {
    return (shape_.loopback ? "127.0.0.1" : process.name()) + ":1";
  };
  return {std::make_unique<SimStream>(shared_from_this(), near, *back_, *there_, peer(far)),
          std::make_unique<SimStream>(shared_from_this(), far, *there_, *back_, peer(near))};
}

std::vector<SimLink::Pipe*> SimLink::pipes(Way way) {
  std::vector<Pipe*> pipes;
  if (way != Way::back) pipes.push_back(there_.get());
  if (way != Way::there) pipes.push_back(back_.get());
  return pipes;
}

void SimLink::block(Way way, Instant until) {
  for (Pipe* pipe : pipes(way)) pipe->blocked_until = std::max(pipe->blocked_until, until);
}

void SimLink::set_rate(Way way, double bytes_per_second) {
  for (Pipe* pipe : pipes(way)) pipe->bytes_per_second = bytes_per_second;
}

void SimLink::flip_bit(Way way) {
  for (Pipe* pipe : pipes(way)) ++pipe->flips;
}

void SimLink::cut() {
  for (Pipe* pipe : pipes(Way::both)) break_off(*pipe);
}

// What of it is on its way is lost, but for the beginning of what would have come first.
void SimLink::break_off(Pipe& pipe) {
  if (std::exchange(pipe.broken, true)) return;
  if (!pipe.flying.empty()) {
    const auto& first = pipe.flying.front().bytes;
    const auto count = static_cast<std::ptrdiff_t>(random_.below(first.size() + 1));
    pipe.arrived.insert(pipe.arrived.end(), first.begin(), first.begin() + count);
  }
  pipe.flying.clear();
  pipe.flying_bytes = 0;
  wake_reader(pipe);
  wake_writer(pipe);
}

std::size_t SimLink::shorter(std::size_t count) {
  if (count < 2 || random_.unit() >= shape_.short_chance) return count;
  return 1 + random_.below(count - 1);
}

Duration SimLink::delay() {
  return duration_of(seconds_of(shape_.latency) * (1 + shape_.jitter * random_.unit()));
}

std::size_t SimLink::take(Pipe& pipe, std::span<const iovec> parts) {
  std::size_t room = 0;
  for (const iovec& part : parts) room += part.iov_len;
  std::size_t left = shorter(std::min(room, pipe.unread()));
  const std::size_t count = left;
  for (const iovec& part : parts) {
    const std::size_t here = std::min(left, part.iov_len);
    if (here > 0) std::memcpy(part.iov_base, pipe.arrived.data() + pipe.read, here);
    pipe.read += here;
    left -= here;
  }
  if (pipe.unread() == 0) {
    pipe.arrived.clear();
    pipe.read = 0;
  }
  if (count > 0 && has_room(pipe)) wake_writer(pipe);
  return count;
}

// Not byte by byte: a socket is writable when a good part of its buffer is free.
bool SimLink::has_room(const Pipe& pipe) const {
  return pipe.flying_bytes + pipe.unread() <= shape_.buffer_bytes - shape_.buffer_bytes / 4;
}

std::size_t SimLink::give(Pipe& pipe, std::span<const iovec> parts) {
  std::size_t offered = 0;
  for (const iovec& part : parts) offered += part.iov_len;
  const std::size_t held = pipe.flying_bytes + pipe.unread();
  const std::size_t room = has_room(pipe) ? shape_.buffer_bytes - held : 0;
  std::size_t left = shorter(std::min(offered, room));
  std::vector<std::byte> bytes;
  bytes.reserve(left);
  for (const iovec& part : parts) {
    const std::size_t here = std::min(left, part.iov_len);
    const auto* from = static_cast<const std::byte*>(part.iov_base);
    bytes.insert(bytes.end(), from, from + here);
    left -= here;
  }
  const std::size_t count = bytes.size();
  if (count > 0) fly(pipe, std::move(bytes), false);
  return count;
}

void SimLink::fly(Pipe& pipe, std::vector<std::byte> bytes, bool end) {
  if (pipe.broken) return;
  const Duration sending = duration_of(static_cast<double>(bytes.size()) / pipe.bytes_per_second);
  pipe.free_at = std::max(time_.now(), pipe.free_at) + sending;
  pipe.last_arrival = std::max(pipe.last_arrival, pipe.free_at + delay());
  pipe.flying_bytes += bytes.size();
  pipe.flying.push_back({pipe.last_arrival, std::move(bytes), end});
  arm(pipe);
}

void SimLink::arm(Pipe& pipe) {
  if (pipe.armed || pipe.flying.empty()) return;
  pipe.armed = true;
  const Instant arrival = std::max(pipe.flying.front().arrival, pipe.blocked_until);
  time_.at(arrival, nullptr, [self = shared_from_this(), &pipe] { self->arrive(pipe); });
}

void SimLink::arrive(Pipe& pipe) {
  pipe.armed = false;
  if (pipe.flying.empty()) return;
  if (time_.now() < pipe.blocked_until) return arm(pipe);
  Pipe::Chunk chunk = std::move(pipe.flying.front());
  pipe.flying.pop_front();
  pipe.flying_bytes -= chunk.bytes.size();
  if (pipe.flips > 0 && !chunk.bytes.empty()) {
    --pipe.flips;
    const std::uint64_t bit = random_.below(8 * chunk.bytes.size());
    chunk.bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
  }
  if (trace_ && pipe.reader != nullptr)
    trace_(fmt::format("{} gets {} bytes{}", pipe.reader->name(), chunk.bytes.size(),
                       chunk.end ? ", the end" : ""));
  pipe.arrived.insert(pipe.arrived.end(), chunk.bytes.begin(), chunk.bytes.end());
  pipe.ended = pipe.ended || chunk.end;
  wake_reader(pipe);
  arm(pipe);
}

void SimLink::wake_reader(Pipe& pipe) {
  if (!pipe.on_readable) return;
  time_.at(time_.now(), pipe.reader, [self = shared_from_this(), &pipe] {
    if (auto task = std::exchange(pipe.on_readable, nullptr)) task();
  });
}

void SimLink::wake_writer(Pipe& pipe) {
  if (!pipe.on_writable) return;
  time_.at(time_.now(), pipe.writer, [self = shared_from_this(), &pipe] {
    if (auto task = std::exchange(pipe.on_writable, nullptr)) task();
  });
}

}  // namespace w5xde
