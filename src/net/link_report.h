// What is known of a link, for status, logs and the codec policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace w5xde {

// What the kernel granted of what was asked for, and what it has measured (TCP_INFO).
struct TcpReport {
  bool no_delay = false;
  bool quick_ack = false;
  bool keep_alive = false;
  std::uint64_t send_buffer_bytes =
      0;  // as the kernel reports it: twice what was asked for, within its limit
  std::uint64_t receive_buffer_bytes = 0;  // likewise
  std::string congestion_control;          // "bbr"
  Duration round_trip = Duration::zero();
  Duration round_trip_variation = Duration::zero();
  Duration round_trip_min = Duration::zero();  // without delayed acknowledgements and queues
  double delivery_bytes_per_second = 0;
  bool sender_limited = false;  // that rate is of a sender that had no more to send, not of the link
  std::uint64_t retransmits = 0;
  std::uint64_t bytes_acknowledged = 0;  // by the other side's kernel
};

struct LinkReport {
  std::string peer;
  Duration round_trip = Duration::zero();  // smoothed, of heartbeats; 0 while there was none
  double send_bytes_per_second = 0;        // while there was something to send; 0 while not known
  double receive_bytes_per_second = 0;     // while a large frame was arriving; 0 while not known
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::optional<TcpReport> tcp;

  // "10.0.0.7:5555: round trip 41.2 ms, 11.9 MB/s out, 98.1 MB/s in, buffers 8192/8192 KiB"
  std::string to_string() const;
};

}  // namespace w5xde
