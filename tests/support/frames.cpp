#include "support/frames.h"

#include <algorithm>
#include <cstring>

namespace w5xde {

std::vector<std::byte> bytes_of_frame(const OutgoingFrame& frame) {
  Limits limits;
  FrameWriter writer(limits);
  if (!writer.push(frame).ok()) return {};
  std::vector<std::byte> bytes;
  for (auto pieces = writer.stage(); !pieces.empty(); pieces = writer.stage()) {
    const auto* data = static_cast<const std::byte*>(pieces[0].iov_base);
    bytes.insert(bytes.end(), data, data + pieces[0].iov_len);
    writer.consume(pieces[0].iov_len);
  }
  return bytes;
}

Result<MutableBytes> KeepingSink::place(const FrameHeader& header, Bytes) {
  landing.assign(header.payload_bytes, std::byte{0});
  return MutableBytes(landing);
}

Status KeepingSink::received(const FrameHeader& header, Bytes head, MutableBytes payload) {
  frames.push_back({header, {head.begin(), head.end()}, {payload.begin(), payload.end()}});
  return {};
}

Status feed(FrameReader& reader, Bytes bytes, std::size_t piece) {
  while (!bytes.empty()) {
    std::size_t given = 0;
    for (const iovec& part : reader.space()) {
      const std::size_t count = std::min({part.iov_len, piece - given, bytes.size()});
      std::memcpy(part.iov_base, bytes.data(), count);
      bytes = bytes.subspan(count);
      given += count;
      if (count < part.iov_len) break;
    }
    W5XDE_CHECK(reader.advance(given));
  }
  return {};
}

}  // namespace w5xde
