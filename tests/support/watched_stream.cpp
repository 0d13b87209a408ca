#include "support/watched_stream.h"

namespace w5xde {

Result<std::size_t> WatchedStream::read(std::span<const iovec> parts) {
  std::size_t room = 0;
  for (const iovec& part : parts) room += part.iov_len;
  watch_.reads.push_back(room);
  return inner_->read(parts);
}

Result<std::size_t> WatchedStream::write(std::span<const iovec> parts) {
  std::vector<std::size_t>& sizes = watch_.writes.emplace_back();
  for (const iovec& part : parts) sizes.push_back(part.iov_len);
  return inner_->write(parts);
}

std::optional<TcpReport> WatchedStream::tcp_report() const {
  ++watch_.reports;
  return watch_.tcp ? watch_.tcp : inner_->tcp_report();
}

void WatchedStream::tune(const SocketOptions& options) {
  watch_.tunings.push_back(options);
  inner_->tune(options);
}

void WatchedStream::fit(const MeasuredLink& link) {
  watch_.fittings.push_back(link);
  inner_->fit(link);
}

}  // namespace w5xde
