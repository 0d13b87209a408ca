#include "net/connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/errors.h"
#include "wire/messages.h"

namespace w5xde {

namespace {

// Then others have their turn on the loop. Cold memory takes 4 ms a MiB: checksum, page faults, and the
// kernel's copy.
constexpr std::size_t kBytesPerTurn = 2 * kMiB;

// A peer that has sent no whole frame by then, or sends a frame slower than this for longer than that, holds
// a connection without using it. The slowest honest link is far above.
constexpr Duration kFrameGrace = std::chrono::seconds(10);
constexpr double kFrameBytesPerSecondMin = 1024;

// The kernel's estimate changes with every acknowledgement; a look at it costs as much as sending a small
// frame.
constexpr Duration kEstimateAge = std::chrono::milliseconds(5);

// How long to wait for a peer that does nothing any more, once everything is sent.
constexpr Duration kPartingPatience = std::chrono::seconds(3);

// Closing ends after this much time and what the queue takes at this rate, whatever the peer does.
constexpr Duration kClosingGrace = std::chrono::seconds(30);
constexpr double kClosingBytesPerSecondMin = 128 * kKiB;

// Pings that a peer may send faster than it reads the pongs.
constexpr std::uint64_t kPongsQueuedMax = 64;

}  // namespace

std::shared_ptr<Connection> Connection::start(std::unique_ptr<Stream> stream, Owner& owner,
                                              const Limits& limits) {
  std::shared_ptr<Connection> connection(
      new Connection(std::move(stream), owner, limits));  // private constructor
  connection->wait_readable();
  connection->arm_tick();
  return connection;
}

Connection::Connection(std::unique_ptr<Stream> stream, Owner& owner, const Limits& limits)
    : stream_(std::move(stream)),
      owner_(&owner),
      reader_(limits, *this),
      writer_(limits),
      liveness_(stream_->loop().now()),
      watched_since_(stream_->loop().now()) {}

Connection::~Connection() {
  detach();
}

Status Connection::send(const OutgoingFrame& frame) {
  stream_->loop().assert_on_loop();
  if (state_ != State::open) return disconnected("the connection is closed");
  W5XDE_CHECK(writer_.push(frame));
  schedule_flush();
  return {};
}

void Connection::close(Error reason) {
  if (state_ != State::open) return;
  Head head;
  // An engine's error may have a trace below its first line, which is for this side's log.
  encode(Goodbye{reason.kind, reason.message.substr(0, reason.message.find('\n'))}, head);
  // A full queue is no reason to stay; the peer then learns from the end of the stream.
  (void)writer_.push({.type = FrameType::goodbye, .head = head});
  state_ = State::closing;
  closing_until_ = stream_->loop().now() + kClosingGrace +
                   duration_of(static_cast<double>(writer_.queued_bytes()) / kClosingBytesPerSecondMin);
  reason_ = std::move(reason);
  schedule_flush();
}

void Connection::detach() {
  owner_ = nullptr;
  if (state_ == State::closed) return;
  state_ = State::closed;
  stream_->loop().cancel(tick_timer_);
  stream_->close();
}

// Ends the connection. The owner is told from the loop, so that it may be in the middle of anything now.
void Connection::fail(Error reason) {
  if (state_ == State::closed) return;
  state_ = State::closed;
  if (!reason_) reason_ = std::move(reason);
  stream_->loop().cancel(tick_timer_);
  stream_->close();
  tell_owner();
}

// From the loop: it may let go of us in either call.
void Connection::tell_owner() {
  stream_->loop().post([self = shared_from_this()] {
    if (self->owner_ != nullptr && !std::exchange(self->told_closed_, true))
      self->owner_->closed(*self->reason_);
    if (self->state_ != State::closed) return;
    if (Owner* owner = std::exchange(self->owner_, nullptr)) owner->gone();
  });
}

void Connection::set_limits(const Limits& limits) {
  reader_.set_limits(limits);
  writer_.set_limits(limits);
}

void Connection::tune(const SocketOptions& options) {
  options_ = options;
  if (state_ != State::closed) stream_->tune(options);
}

void Connection::wait_readable() {
  stream_->when_readable([this] { read(); });
}

void Connection::read() {
  const auto self = shared_from_this();  // the owner may let go of us in received()
  if (state_ != State::open) {
    drop_input();
    if (state_ != State::closed) wait_readable();
    return;
  }
  const bool flush_pending = flush_scheduled_;
  reading_ = true;
  const Status status = read_frames();
  reading_ = false;
  if (!status.ok() && state_ == State::open) close(status.error());
  if (flush_scheduled_ && !flush_pending) flush();
  if (state_ != State::closed) wait_readable();
}

// A socket that is closed with bytes unread resets the connection, and what was said last, which may still be
// on its way, is lost with it.
void Connection::drop_input() {
  std::array<std::byte, 64 * kKiB> nowhere;
  const iovec part{nowhere.data(), nowhere.size()};
  for (std::size_t turn = 0; turn < kBytesPerTurn;) {
    const auto count = stream_->read({&part, 1});
    if (!count) return fail(count.error());
    if (*count == 0) return;
    liveness_.heard(stream_->loop().now());
    bytes_received_ += *count;
    turn += *count;
  }
}

void Connection::part() {
  if (std::exchange(state_, State::parting) == State::parting) return;
  parting_progress_ = stream_->loop().now();
  stream_->finish_writing();
  tell_owner();
}

Status Connection::read_frames() {
  std::size_t turn = 0;
  while (state_ != State::closed) {
    const auto parts = reader_.space(options_.receive_chunk_bytes);
    std::size_t room = 0;
    for (const iovec& part : parts) room += part.iov_len;
    auto count = stream_->read(parts);
    if (!count) {
      fail(count.error());
      return std::move(count).error();
    }
    if (*count == 0) break;
    const Instant now = stream_->loop().now();
    liveness_.heard(now);
    bytes_received_ += *count;
    receive_rate_.moved(*count, now);
    W5XDE_CHECK(reader_.advance(*count));
    turn += *count;
    if (*count < room || turn >= kBytesPerTurn) break;
  }
  return {};
}

Result<MutableBytes> Connection::place(const FrameHeader& header, Bytes head) {
  if (header.codec >= kFrameCodecs) return corrupt("codec {} is not known", header.codec);
  if (state_ != State::open || owner_ == nullptr) return disconnected("closing");
  receive_rate_.start(stream_->loop().now());
  return owner_->place(header, head);
}

Status Connection::received(const FrameHeader& header, Bytes head, MutableBytes payload) {
  if (header.payload_bytes != 0) receive_rate_.stop(stream_->loop().now());
  switch (header.type) {
    case FrameType::ping: {
      W5XDE_TRY(const Heartbeat ping, decode_heartbeat(head));
      return send_heartbeat(FrameType::pong, ping.token);
    }
    case FrameType::pong: {
      W5XDE_TRY(const Heartbeat pong, decode_heartbeat(head));
      liveness_.ponged(pong.token, stream_->loop().now());
      return {};
    }
    case FrameType::goodbye: {
      W5XDE_TRY(Goodbye goodbye, decode_goodbye(head, Limits::stranger()));
      goodbye_received_ = true;
      fail({goodbye.kind, std::string(kGoodbyePrefix) + goodbye.reason});
      return disconnected("the other side left");
    }
    default:
      if (state_ != State::open || owner_ == nullptr) return disconnected("closing");
      // The link is measured as soon as the peer has spoken; before that, nothing may come ahead of our own
      // hello.
      if (reader_.frames_received() == 1)
        stream_->loop().post([weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->ping();
        });
      return owner_->received(header, head, payload);
  }
}

Status Connection::send_heartbeat(FrameType type, std::uint64_t token) {
  if (state_ != State::open) return {};
  if (writer_.queued_urgent() >= kPongsQueuedMax)
    return overloaded("pings come faster than their pongs are read");
  Head head;
  encode(Heartbeat{token}, head);
  return send({.type = type, .head = head, .urgent = true});
}

void Connection::schedule_flush() {
  // Answers go out at the end of the read that asked for them; a posted task would let the loop look at every
  // other socket first.
  if (std::exchange(flush_scheduled_, true) || reading_) return;
  stream_->loop().post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->flush();
  });
}

// From the loop only, so that the owner may be told what came of it.
void Connection::flush() {
  flush_scheduled_ = false;
  if (state_ == State::closed) return;
  std::size_t turn = 0;
  for (auto pieces = writer_.stage(); !pieces.empty(); pieces = writer_.stage()) {
    if (turn >= kBytesPerTurn) return schedule_flush();
    auto count = stream_->write(options_.combined_send ? pieces : pieces.first(1));
    if (!count) {
      // The peer is gone; what it said before may be why. Unless this side is leaving: then it has a reason,
      // perhaps that nothing more can be read.
      if (state_ == State::open) (void)read_frames();
      return fail(std::move(count).error());
    }
    const Instant now = stream_->loop().now();
    send_rate_.start(now);
    if (*count == 0) {
      flush_scheduled_ = true;
      stream_->when_writable([this] {
        const auto self = shared_from_this();
        flush();
      });
      return;
    }
    writer_.consume(*count);
    bytes_sent_ += *count;
    turn += *count;
    send_rate_.moved(*count, now);
    liveness_.progressed(now);
  }
  send_rate_.stop(stream_->loop().now());
  if (state_ != State::open) return part();
  if (turn != 0 && owner_ != nullptr) owner_->drained();
}

void Connection::arm_tick() {
  tick_timer_ = stream_->loop().after(liveness_.interval(), [this] { tick(); });
}

void Connection::tick() {
  const auto self = shared_from_this();
  const Instant now = stream_->loop().now();
  watched_since_ += liveness_.stood_still(now);
  const bool ping_due = liveness_.tick(now);
  look_at_link(now);
  if (state_ == State::parting && now - parting_progress_ >= kPartingPatience)
    return fail(disconnected("closed"));
  if (state_ != State::open && now >= closing_until_) return fail(disconnected("closed"));
  if (auto dead = liveness_.verdict(now, !writer_.empty())) return fail(std::move(*dead));
  if (auto slow = slowness(now)) close(std::move(*slow));
  if (ping_due) ping();
  if (state_ != State::closed) arm_tick();
}

void Connection::look_at_link(Instant now) {
  const auto tcp = stream_->tcp_report();
  if (!tcp) return;
  // What is written may lie in this machine's socket buffer for long on a slow link, ping and all: bytes that
  // the other side acknowledges are a sign of life too.
  if (std::exchange(bytes_acknowledged_, tcp->bytes_acknowledged) != tcp->bytes_acknowledged) {
    liveness_.progressed(now);
    parting_progress_ = now;
  }
  estimated(*tcp, now);
  if (!options_.fitted()) return;
  stream_->fit({.send_bytes_per_second = outgoing_rate_.bytes_per_second(),
                .send_rate_limited_by_link = outgoing_rate_.limited_by_link(),
                .receive_bytes_per_second = receive_rate_.bytes_per_second(),
                .round_trip = tcp->round_trip_min});
}

void Connection::estimated(const TcpReport& tcp, Instant now) {
  outgoing_rate_.add(tcp.delivery_bytes_per_second, tcp.sender_limited);
  estimated_at_ = now;
}

void Connection::ping() {
  if (state_ != State::open) return;
  const std::uint64_t token = next_token_++;
  if (send_heartbeat(FrameType::ping, token).ok()) liveness_.pinged(token, stream_->loop().now());
}

std::optional<Error> Connection::slowness(Instant now) {
  const bool nothing_yet = reader_.frames_received() == 0;
  const std::uint64_t pending = reader_.frame_bytes_pending();
  if ((pending == 0 && !nothing_yet) || reader_.frames_received() != watched_frame_) {
    watched_frame_ = reader_.frames_received();
    watched_since_ = now;
    return std::nullopt;
  }
  const Duration elapsed = now - watched_since_;
  if (elapsed <= kFrameGrace ||
      static_cast<double>(pending) >= kFrameBytesPerSecondMin * seconds_of(elapsed)) {
    return std::nullopt;
  }
  return overloaded("{} bytes of a frame in {:.0f} s: too slow to keep the connection", pending,
                    seconds_of(elapsed));
}

// What was written may lie in this machine's own buffers; what was acknowledged has crossed the link.
double Connection::outgoing_bytes_per_second() {
  const Instant now = stream_->loop().now();
  if (now - estimated_at_ < kEstimateAge) return outgoing_rate_.bytes_per_second();
  const auto tcp = stream_->tcp_report();
  if (!tcp) return send_rate_.bytes_per_second();
  estimated(*tcp, now);
  return outgoing_rate_.bytes_per_second();
}

bool Connection::all_arrived() const {
  if (queued_bytes() > 0) return false;
  const auto tcp = stream_->tcp_report();
  return !tcp || tcp->bytes_acknowledged >= bytes_sent_;
}

LinkReport Connection::link() const {
  return {.round_trip = liveness_.round_trip(),
          .send_bytes_per_second = send_rate_.bytes_per_second(),
          .receive_bytes_per_second = receive_rate_.bytes_per_second(),
          .bytes_sent = bytes_sent_,
          .bytes_received = bytes_received_,
          .tcp = stream_->tcp_report()};
}

}  // namespace w5xde
