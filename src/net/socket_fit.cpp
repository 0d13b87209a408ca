#include "net/socket_fit.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/limits.h"

namespace w5xde {

namespace {

// One pipe's worth is on its way, another waits to follow or, at the receiver, to be read.
constexpr double kPipes = 2;
// The kernel's memory for one direction of one connection: 10 Gbit/s over 50 ms.
constexpr std::uint64_t kRoomMax = 64 * kMiB;
// Sizes are asked for in steps, so that a rate that trembles does not ask again and again.
constexpr std::uint64_t kRoomStep = 1 * kMiB;

// The kernel says that there is room when half of what may be unsent is gone: the loop has the other half's
// time to come and fill it, which is as long as a node may compute on its I/O thread.
constexpr double kUnsentSeconds = 0.04;
// Whatever the link, less is not worth a system call.
constexpr std::uint64_t kUnsentMin = 128 * kKiB;

std::uint64_t room_of(std::uint64_t size) {
  return size / 2;
}

}  // namespace

BufferFit fit_buffer(double bytes_per_second, Duration round_trip, const BufferState& buffer) {
  if (buffer.ceiling == 0) return {};
  const double pipes = kPipes * bytes_per_second * seconds_of(round_trip);
  const std::uint64_t enough = room_of(std::max(buffer.size, buffer.ceiling));
  if (!(pipes > static_cast<double>(enough))) return {};
  const auto wanted =
      std::min(kRoomMax, align_up(static_cast<std::uint64_t>(std::min(pipes, 1e18)), kRoomStep));
  if (wanted <= enough) return {};
  const std::uint64_t permitted = std::min(wanted, room_of(buffer.granted));
  return {wanted, permitted > enough ? permitted : 0};
}

std::uint64_t fit_unsent(const MeasuredLink& link, const BufferState& send) {
  // A sender with little to send has nothing waiting, and the rate it shows would hold back its next large
  // frame.
  if (!link.send_rate_limited_by_link || send.ceiling == 0) return 0;
  const double unsent = link.send_bytes_per_second * kUnsentSeconds;
  const std::uint64_t room = room_of(std::max(send.size, send.ceiling));
  if (!(unsent < static_cast<double>(room))) return 0;
  const std::uint64_t fitted = std::max(kUnsentMin, align_up(static_cast<std::uint64_t>(unsent), kUnsentMin));
  return fitted < room ? fitted : 0;
}

}  // namespace w5xde
