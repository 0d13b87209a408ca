#include "net/payload_codec.h"

#include <fmt/format.h>

namespace w5xde {

namespace {

Instant now() {
  return SteadyClock().now();
}

}  // namespace

Status PayloadSender::send(Connection& connection, FrameType type, Bytes head, Bytes raw,
                           std::shared_ptr<const void> keep) {
  stats_.raw_bytes += raw.size();
  if (codec_.lossless.kind != LosslessKind::none && !raw.empty()) {
    const Instant begun = now();
    auto encoded = std::make_shared<AlignedBuffer>(section_bytes_max(raw.size(), codec_.chunk_log2));
    const Bytes section = encoder_.encode_into({encoded->data(), encoded->capacity()}, raw, codec_, pool_);
    stats_.busy += now() - begun;
    if (section.size() < raw.size()) {
      stats_.wire_bytes += section.size();
      const TensorView view = TensorView::of_bytes(section);
      return connection.send({.type = type,
                              .codec = static_cast<std::uint8_t>(codec_.lossless.kind),
                              .shuffle_width = codec_.shuffle_width,
                              .head = head,
                              .payload = {&view, 1},
                              .keep = std::move(encoded)});
    }
  }
  stats_.wire_bytes += raw.size();
  const TensorView view = TensorView::of_bytes(raw);
  return connection.send({.type = type, .head = head, .payload = {&view, 1}, .keep = std::move(keep)});
}

Result<MutableBytes> PayloadReceiver::place(const FrameHeader& header, MutableBytes raw) {
  if (header.codec == 0) {
    if (header.payload_bytes == raw.size()) return raw;
  } else if (header.payload_bytes <= section_bytes_max(raw.size())) {
    return encoded_.take(header.payload_bytes);
  }
  return corrupt(fmt::format("a {} frame has {} bytes for a payload of {}", name_of(header.type),
                             header.payload_bytes, raw.size()));
}

Status PayloadReceiver::finish(const FrameHeader& header, Bytes payload, MutableBytes raw) {
  stats_.raw_bytes += raw.size();
  stats_.wire_bytes += payload.size();
  if (header.codec == 0) return {};
  const Instant begun = now();
  Status status =
      decoder_.decode(payload, static_cast<LosslessKind>(header.codec), header.shuffle_width, raw, pool_);
  stats_.busy += now() - begun;
  return status;
}

}  // namespace w5xde
