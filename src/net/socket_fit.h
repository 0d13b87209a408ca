// What a socket needs for the link it is on. Pure; what the kernel is asked is in socket_tuning.h.
//
//   pipe      bandwidth × delay: the bytes that are on their way when the link is full
//   room      what a buffer holds of a frame's bytes: half of the size that the kernel reports, which counts
//             its bookkeeping too
//   ceiling   how far the kernel lets a buffer grow by itself
//
// The kernel fits buffers to the link by itself, up to its ceilings, and stops as soon as a size is set: so
// one is set only where two pipes do not fit below the ceiling. A buffer that is the bottleneck shows a pipe
// as large as its room; twice that is more, so sizes double until the link is the bottleneck.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace w5xde {

// What a connection has measured; 0 is not known.
struct MeasuredLink {
  double send_bytes_per_second = 0;
  bool send_rate_limited_by_link = false;  // not that of a sender with little to send
  double receive_bytes_per_second = 0;
  Duration round_trip = Duration::zero();  // without queues: our own must not ask for more of themselves

  bool operator==(const MeasuredLink&) const = default;
};

// One direction's buffer, as the kernel reports sizes; 0 is not known.
struct BufferState {
  std::uint64_t size = 0;
  std::uint64_t ceiling = 0;  // net.ipv4.tcp_wmem or tcp_rmem
  std::uint64_t granted = 0;  // the most that anyone gets by asking: twice net.core.wmem_max or rmem_max
};

// One direction's answer, in bytes of room; 0: leave it as it is.
struct BufferFit {
  std::uint64_t wanted = 0;     // for processes that may pass the kernel's limits
  std::uint64_t permitted = 0;  // for others: less, but still more than the kernel would choose

  bool operator==(const BufferFit&) const = default;
};

BufferFit fit_buffer(double bytes_per_second, Duration round_trip, const BufferState& buffer);

// How much may wait in the send buffer that is not on its way yet (TCP_NOTSENT_LOWAT), so that a heartbeat or
// a newer version does not stand behind seconds of older bytes; 0: as much as there is room for.
std::uint64_t fit_unsent(const MeasuredLink& link, const BufferState& send);

}  // namespace w5xde
