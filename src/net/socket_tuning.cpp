#include "net/socket_tuning.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>

#include "base/limits.h"
#include "net/tcp_info.h"

namespace w5xde {

namespace {

int option_of(int fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, level, name, &value, &size) == 0 ? value : 0;
}

bool set_option(int fd, int level, int name, std::uint64_t value) {
  const int number = static_cast<int>(std::min<std::uint64_t>(value, kGiB));
  return ::setsockopt(fd, level, name, &number, sizeof number) == 0;
}

// One direction's buffer.
struct Buffer {
  int name;
  int force_name;

  std::uint64_t size(int fd) const { return static_cast<std::uint64_t>(option_of(fd, SOL_SOCKET, name)); }

  // Root may go past net.core.[rw]mem_max; others get what that allows. 0 asks for nothing.
  bool set(int fd, std::uint64_t forced, std::uint64_t permitted) const {
    if (forced != 0 && set_option(fd, SOL_SOCKET, force_name, forced)) return true;
    return permitted != 0 && set_option(fd, SOL_SOCKET, name, permitted);
  }
};

constexpr Buffer kSend{SO_SNDBUF, SO_SNDBUFFORCE};
constexpr Buffer kReceive{SO_RCVBUF, SO_RCVBUFFORCE};

void set_receive_buffer(int fd, std::uint64_t forced, std::uint64_t permitted) {
  if (!kReceive.set(fd, forced, permitted)) return;
  // Once connected, older kernels keep the window that they had chosen, unless they are told.
  (void)set_option(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, kReceive.size(fd));
}

// Where a kernel gives one number, or a least, an initial and a greatest one: the last.
std::uint64_t last_number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::uint64_t last = 0;
  for (std::uint64_t number = 0; file >> number;) last = number;
  return last;
}

}  // namespace

void tune_socket(int fd, const SocketOptions& options) {
  (void)set_option(fd, IPPROTO_TCP, TCP_NODELAY, options.no_delay ? 1 : 0);
  (void)set_option(fd, IPPROTO_TCP, TCP_QUICKACK, options.quick_ack ? 1 : 0);
  (void)set_option(fd, SOL_SOCKET, SO_KEEPALIVE, options.keep_alive ? 1 : 0);
  (void)set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0);
  (void)kSend.set(fd, options.send_buffer_bytes, options.send_buffer_bytes);
  set_receive_buffer(fd, options.receive_buffer_bytes, options.receive_buffer_bytes);
}

// There is no bottleneck to find: an algorithm that paces (BBR) only holds bytes back, at half the rate. Reno
// is everywhere and allowed to everyone.
void tune_loopback(int fd) {
  constexpr char kReno[] = "reno";
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, kReno, sizeof kReno - 1);
}

KernelLimits read_kernel_limits(const std::filesystem::path& folder) {
  return {.send_ceiling = last_number_in(folder / "ipv4/tcp_wmem"),
          .send_granted = 2 * last_number_in(folder / "core/wmem_max"),
          .receive_ceiling = last_number_in(folder / "ipv4/tcp_rmem"),
          .receive_granted = 2 * last_number_in(folder / "core/rmem_max")};
}

void fit_socket(int fd, const MeasuredLink& link, const KernelLimits& limits) {
  BufferState send{kSend.size(fd), limits.send_ceiling, limits.send_granted};
  const BufferFit more = fit_buffer(link.send_bytes_per_second, link.round_trip, send);
  (void)kSend.set(fd, more.wanted, more.permitted);
  send.size = kSend.size(fd);
  (void)set_option(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, fit_unsent(link, send));

  const BufferState receive{kReceive.size(fd), limits.receive_ceiling, limits.receive_granted};
  const BufferFit fuller = fit_buffer(link.receive_bytes_per_second, link.round_trip, receive);
  set_receive_buffer(fd, fuller.wanted, fuller.permitted);
}

TcpReport report_socket(int fd) {
  TcpReport report;
  report.no_delay = option_of(fd, IPPROTO_TCP, TCP_NODELAY) != 0;
  report.quick_ack = option_of(fd, IPPROTO_TCP, TCP_QUICKACK) != 0;
  report.keep_alive = option_of(fd, SOL_SOCKET, SO_KEEPALIVE) != 0;
  report.send_buffer_bytes = kSend.size(fd);
  report.receive_buffer_bytes = kReceive.size(fd);
  char algorithm[16] = {};
  socklen_t size = sizeof algorithm - 1;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, algorithm, &size) == 0)
    report.congestion_control = algorithm;
  read_tcp_info(fd, report);
  return report;
}

}  // namespace w5xde
