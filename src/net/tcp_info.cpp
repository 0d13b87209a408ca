#include "net/tcp_info.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>

namespace w5xde {

void read_tcp_info(int fd, TcpReport& report) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return;
  if (info.tcpi_min_rtt != UINT32_MAX) report.round_trip_min = std::chrono::microseconds(info.tcpi_min_rtt);
  report.delivery_bytes_per_second = static_cast<double>(info.tcpi_delivery_rate);
  report.sender_limited = info.tcpi_delivery_rate_app_limited != 0;
  report.bytes_acknowledged = info.tcpi_bytes_acked;
}

}  // namespace w5xde
