#pragma once

#include "net/stream.h"

namespace w5xde {

// Fills in what the kernel has measured of a TCP socket. In a file of its own because <linux/tcp.h>, which
// alone has the delivery rate, and <netinet/tcp.h>, which asio needs, cannot be included together.
void read_tcp_info(int fd, TcpReport& report);

}  // namespace w5xde
