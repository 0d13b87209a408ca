#include "net/link_report.h"

#include <fmt/format.h>

namespace w5xde {

std::string LinkReport::to_string() const {
  std::string text =
      fmt::format("{}: round trip {:.1f} ms, {:.1f} MB/s out, {:.1f} MB/s in", peer,
                  seconds_of(round_trip) * 1e3, send_bytes_per_second / 1e6, receive_bytes_per_second / 1e6);
  if (tcp) {
    text +=
        fmt::format(", buffers {}/{} KiB", tcp->send_buffer_bytes / 1024, tcp->receive_buffer_bytes / 1024);
  }
  return text;
}

}  // namespace w5xde
