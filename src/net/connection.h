#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "net/liveness.h"
#include "net/rate_median.h"
#include "net/rate_meter.h"
#include "net/stream.h"
#include "w5xde/result.h"
#include "wire/frame_reader.h"
#include "wire/frame_writer.h"

namespace w5xde {

// Before the reason that a peer gave with its goodbye.
inline constexpr std::string_view kGoodbyePrefix = "the other side left: ";

// What a connection knows of its link.
struct LinkReport {
  Duration round_trip = Duration::zero();  // smoothed, of heartbeats; 0 while there was none
  double send_bytes_per_second = 0;        // while there was something to send; 0 while not known
  double receive_bytes_per_second = 0;     // while a large frame was arriving; 0 while not known
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::optional<TcpReport> tcp;
};

// Frames over a stream. Sends without copying, receives into memory that its owner names, answers and sends
// heartbeats, and notices a peer that is dead, frozen, or too slow on purpose. A bad byte closes this
// connection and touches no other. Loop thread only.
class Connection : public std::enable_shared_from_this<Connection>, public FrameSender, private FrameSink {
 public:
  // Who the frames are for. Heartbeats do not reach it; an error from received() closes the connection.
  class Owner : public FrameSink {
   public:
    // All that was queued is written: time for more.
    virtual void drained() {}
    // No frame goes or comes after this; the peer's goodbye, if it said one, is the reason. Never called from
    // inside one of the connection's own functions.
    virtual void closed(const Error& reason) = 0;
    // After closed(), perhaps at once: the peer has closed too, or is not waited for any longer. Letting go
    // of the connection earlier may cost the peer the last bytes.
    virtual void gone() {}
  };

  // Starts reading. The owner must outlive the connection or detach() from it. Begin with Limits::stranger()
  // and raise them when the peer has said who it is.
  static std::shared_ptr<Connection> start(std::unique_ptr<Stream> stream, Owner& owner,
                                           const Limits& limits);

  // What one turn of the loop queues is written together, at its end.
  Status send(const OutgoingFrame& frame) override;

  // Says goodbye with the reason, after what is queued already, and closes when that is written or the peer
  // takes no more. The owner hears closed(reason) then, and gone() when the peer has closed too. Both come in
  // bounded time, also if the peer reads a byte at a time, or sends and never reads.
  void close(Error reason);
  // The owner wants to hear nothing more; the stream is closed at once.
  void detach();

  void set_limits(const Limits& limits);
  void tune(const SocketOptions& options);
  bool open() const { return state_ == State::open; }
  // The peer left of its own will, or refused us: the link is not to blame.
  bool goodbye_received() const { return goodbye_received_; }

  std::uint64_t queued_bytes() const { return writer_.queued_bytes(); }
  std::uint64_t queued_frames() const { return writer_.queued_frames(); }
  // All that was sent has crossed the link, as far as is known here.
  bool all_arrived() const;
  LinkReport link() const;
  // The kernel is asked now and then.
  double outgoing_bytes_per_second() override;
  // As link() has it, which asks the kernel for much else.
  double incoming_bytes_per_second() const { return receive_rate_.bytes_per_second(); }
  const Stream& stream() const { return *stream_; }

  ~Connection() override;

 private:
  enum class State {
    open,
    closing,  // there is something left to write
    parting,  // all is written, and it is the peer's turn to close
    closed
  };

  Connection(std::unique_ptr<Stream> stream, Owner& owner, const Limits& limits);

  Result<MutableBytes> place(const FrameHeader& header, Bytes head) override;
  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override;

  void read();
  Status read_frames();
  void drop_input();
  void part();
  void wait_readable();
  void schedule_flush();
  void flush();
  void tick();
  void arm_tick();
  void look_at_link(Instant now);
  void estimated(const TcpReport& tcp, Instant now);
  void ping();
  Status send_heartbeat(FrameType type, std::uint64_t token);
  std::optional<Error> slowness(Instant now);
  void fail(Error reason);
  void tell_owner();

  const std::unique_ptr<Stream> stream_;
  Owner* owner_;
  State state_ = State::open;
  std::optional<Error> reason_;  // why it is closing
  bool told_closed_ = false;
  bool goodbye_received_ = false;

  FrameReader reader_;
  FrameWriter writer_;
  SocketOptions options_;
  bool reading_ = false;
  bool flush_scheduled_ = false;  // at the end of this read, by a posted task, or by the stream

  Liveness liveness_;
  RateMeter send_rate_;
  RateMeter receive_rate_;
  RateMedian outgoing_rate_;
  Instant estimated_at_;  // outgoing_rate_ has what the kernel knew then
  Loop::TimerId tick_timer_ = 0;
  Instant closing_until_;     // when neither the peer nor the queue is waited for any longer
  Instant parting_progress_;  // when the peer last acknowledged some of the last bytes
  std::uint64_t next_token_ = 1;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
  std::uint64_t bytes_acknowledged_ = 0;  // as of the last tick

  // The frame that was arriving at the last tick, and since when: what the slow-loris check looks at.
  std::uint64_t watched_frame_ = 0;
  Instant watched_since_;
};

}  // namespace w5xde
