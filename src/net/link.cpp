#include "net/link.h"

#include <algorithm>
#include <deque>
#include <list>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/random.h"

namespace w5xde {

namespace {

constexpr std::size_t kChunkBytes = 64 * kKiB;
constexpr std::size_t kQueueBytesMin = 256 * kKiB;

// Bytes on their way, and when they arrive.
struct Chunk {
  std::vector<std::byte> bytes;
  std::size_t written = 0;
  Instant due;
};

}  // namespace

// A connection through the link is two pumps, one each way.
struct Link::State : std::enable_shared_from_this<Link::State> {
  struct Pipe;

  // Reads from one stream, holds the bytes back for as long as the link's shape says, writes to the other.
  struct Pump {
    Pump(State& s, Pipe& p, Stream& f, Stream& t, Instant& way, std::uint64_t seed)
        : state(s), pipe(p), from(f), to(t), way_free_at(way), random(seed), flip_in(next_flip()) {}
    ~Pump() { state.loop.cancel(timer); }

    void read();
    void write();
    void schedule(Instant when);
    void flip(std::span<std::byte> bytes);
    std::uint64_t next_flip() {
      return random.below(2 * std::max<std::uint64_t>(state.shape.flip_every_bytes, 1));
    }
    std::size_t queue_bytes_max() const;

    State& state;
    Pipe& pipe;
    Stream& from;
    Stream& to;
    Instant& way_free_at;  // as free_at, for all pumps that go this way
    Random random;
    std::uint64_t flip_in;
    std::deque<Chunk> queue;
    std::size_t queued_bytes = 0;
    Instant free_at{};  // when the link has room for the next byte
    Loop::TimerId timer = 0;
    bool reading = false;
    bool ended = false;
  };

  struct Pipe {
    std::unique_ptr<Stream> near, far;
    std::unique_ptr<Pump> there, back;
    std::uint64_t carried = 0;
    bool dead = false;
  };

  State(AsioLoop& l, Address t, LinkShape s, std::uint64_t seed)
      : loop(l), target(std::move(t)), shape(s), random(seed), started(l.now()) {}

  void accept(std::unique_ptr<Stream> near);
  void join(std::unique_ptr<Stream> near, std::unique_ptr<Stream> far);
  void drop(Pipe& pipe);
  void wake_all();
  // When bytes may move again, if they may not now.
  Instant moving_at(Instant now) const;

  AsioLoop& loop;
  const Address target;
  LinkShape shape;
  Random random;
  const Instant started;
  bool partitioned = false;
  std::uint64_t flipped = 0;
  Instant there_free_at{}, back_free_at{};
  std::unique_ptr<Listener> listener;
  std::list<std::shared_ptr<Pipe>> pipes;
};

Instant Link::State::moving_at(Instant now) const {
  if (shape.stall_every == Duration::zero()) return now;
  const Duration cycle = shape.stall_every + shape.stall_for;
  const Duration phase = (now - started) % cycle;
  return phase < shape.stall_every ? now : now + (cycle - phase);
}

std::size_t Link::State::Pump::queue_bytes_max() const {
  // What the link itself holds while bytes travel; with less, the delay would limit the rate.
  const double in_flight = state.shape.bytes_per_second * seconds_of(state.shape.delay) * 2;
  const std::size_t unlimited = state.shape.bytes_per_second == 0 ? 64 * kMiB : 0;
  // On a shared link everybody waits behind what each has queued.
  const std::size_t least = state.shape.shared ? kChunkBytes : kQueueBytesMin;
  return std::max({least, static_cast<std::size_t>(in_flight), unlimited});
}

void Link::State::Pump::read() {
  reading = false;
  while (!ended && !pipe.dead && !state.partitioned && queued_bytes < queue_bytes_max()) {
    Chunk chunk;
    chunk.bytes.resize(kChunkBytes);
    const iovec part{chunk.bytes.data(), chunk.bytes.size()};
    const auto count = from.read({&part, 1});
    if (!count) {
      ended = true;
      break;
    }
    if (*count == 0) {
      reading = true;
      from.when_readable([this] { read(); });
      break;
    }
    chunk.bytes.resize(*count);
    flip(chunk.bytes);
    Instant& free = state.shape.shared ? way_free_at : free_at;
    free = std::max(free, state.loop.now());
    if (state.shape.bytes_per_second != 0) {
      free += duration_of(static_cast<double>(*count) / state.shape.bytes_per_second);
    }
    chunk.due = free + state.shape.delay;
    queued_bytes += *count;
    queue.push_back(std::move(chunk));
  }
  write();
}

void Link::State::Pump::write() {
  while (!pipe.dead && !state.partitioned && !queue.empty()) {
    Chunk& chunk = queue.front();
    const Instant now = state.loop.now();
    const Instant when = std::max(chunk.due, state.moving_at(now));
    if (when > now) return schedule(when);
    const iovec part{chunk.bytes.data() + chunk.written, chunk.bytes.size() - chunk.written};
    const auto count = to.write({&part, 1});
    if (!count) return state.drop(pipe);
    if (*count == 0) return to.when_writable([this] { write(); });
    chunk.written += *count;
    queued_bytes -= *count;
    pipe.carried += *count;
    if (chunk.written == chunk.bytes.size()) queue.pop_front();
    if (state.shape.cut_after_bytes != 0 && pipe.carried >= state.shape.cut_after_bytes)
      return state.drop(pipe);
  }
  if (pipe.dead || state.partitioned) return;
  if (ended) return state.drop(pipe);
  if (!reading && queued_bytes < queue_bytes_max()) {
    reading = true;
    from.when_readable([this] { read(); });
  }
}

void Link::State::Pump::schedule(Instant when) {
  state.loop.cancel(timer);
  timer = state.loop.after(when - state.loop.now(), [this] { write(); });
}

void Link::State::Pump::flip(std::span<std::byte> bytes) {
  if (state.shape.flip_every_bytes == 0) return;
  std::uint64_t at = flip_in;
  for (; at < bytes.size(); at += 1 + next_flip()) {
    bytes[at] ^= static_cast<std::byte>(1u << random.below(8));
    ++state.flipped;
  }
  flip_in = at - bytes.size();
}

void Link::State::accept(std::unique_ptr<Stream> near) {
  if (partitioned) return;
  ConnectOptions options;
  options.address = target;
  options.attempts_max = 1;
  // A std::function must be copyable, a stream is not.
  auto held = std::make_shared<std::unique_ptr<Stream>>(std::move(near));
  connect_tcp(loop, std::move(options), random,
              [self = shared_from_this(), held](Result<std::unique_ptr<Stream>> far) {
                if (far && self->listener) self->join(std::move(*held), std::move(far).value());
              });
}

void Link::State::join(std::unique_ptr<Stream> near, std::unique_ptr<Stream> far) {
  auto pipe = std::make_shared<Pipe>();
  pipe->near = std::move(near);
  pipe->far = std::move(far);
  pipe->there = std::make_unique<Pump>(*this, *pipe, *pipe->near, *pipe->far, there_free_at, random.next());
  pipe->back = std::make_unique<Pump>(*this, *pipe, *pipe->far, *pipe->near, back_free_at, random.next());
  pipes.push_back(pipe);
  pipe->there->read();
  if (!pipe->dead) pipe->back->read();
}

// Closes now, frees later: a pump of this pipe is running.
void Link::State::drop(Pipe& pipe) {
  if (std::exchange(pipe.dead, true)) return;
  pipe.near->close();
  pipe.far->close();
  loop.post(
      [self = shared_from_this()] { self->pipes.remove_if([](const auto& other) { return other->dead; }); });
}

void Link::State::wake_all() {
  for (const auto& pipe : std::list(pipes)) {
    for (Pump* pump : {pipe->there.get(), pipe->back.get()}) {
      if (!pipe->dead) pump->reading ? pump->write() : pump->read();
    }
  }
}

Result<std::unique_ptr<Link>> Link::start(AsioLoop& loop, const Address& target, const LinkShape& shape,
                                          std::uint64_t seed) {
  auto state = std::make_shared<State>(loop, target, shape, seed);
  // The listener's callback must not keep the state alive: the state owns the listener.
  W5XDE_TRY(state->listener, listen_tcp(loop, {"127.0.0.1", 0}, {},
                                        [weak = std::weak_ptr(state)](std::unique_ptr<Stream> near) {
                                          if (auto self = weak.lock()) self->accept(std::move(near));
                                        }));
  return std::unique_ptr<Link>(new Link(std::move(state)));
}

Link::Link(std::shared_ptr<State> state) : state_(std::move(state)) {}

Link::~Link() {
  state_->listener.reset();
  cut_all();
}

const Address& Link::address() const {
  return state_->listener->address();
}

void Link::set_shape(const LinkShape& shape) {
  state_->shape = shape;
  state_->wake_all();
}

void Link::set_partitioned(bool partitioned) {
  state_->partitioned = partitioned;
  if (!partitioned) state_->wake_all();
}

void Link::cut_all() {
  for (const auto& pipe : std::list(state_->pipes)) state_->drop(*pipe);
}

std::uint64_t Link::connections() const {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(state_->pipes, [](const auto& pipe) { return !pipe->dead; }));
}

std::uint64_t Link::bits_flipped() const {
  return state_->flipped;
}

}  // namespace w5xde
