#include "net/payload_codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "wire/tensor_list.h"

namespace w5xde {

namespace {

Instant now() {
  return SteadyClock().now();
}

// As they lie in a frame.
Bytes join(std::span<const TensorView> tensors, MutableBytes out) {
  std::uint64_t at = 0;
  for (const TensorView& tensor : tensors) {
    const std::uint64_t begin = align_up(at, kPayloadAlignment);
    std::ranges::fill(out.subspan(at, begin - at), std::byte{0});
    std::ranges::copy(tensor.bytes(), out.begin() + static_cast<std::ptrdiff_t>(begin));
    at = begin + tensor.byte_count();
  }
  return out;
}

}  // namespace

std::optional<PayloadSender::Section> PayloadSender::encode(std::span<const TensorView> payload) {
  const std::uint64_t raw_bytes = payload_bytes_of(payload);
  if (codec_.lossless.kind == LosslessKind::none || raw_bytes == 0) return std::nullopt;
  const Instant begun = now();
  const Bytes raw = payload.size() == 1 ? payload[0].bytes() : join(payload, joined_.take(raw_bytes));
  auto encoded = std::make_shared<AlignedBuffer>(section_bytes_max(raw.size(), codec_.chunk_log2));
  const Bytes section = encoder_.encode_into({encoded->data(), encoded->capacity()}, raw, codec_, pool_);
  stats_.busy += now() - begun;
  if (section.size() >= raw.size()) return std::nullopt;
  return Section{section, std::move(encoded)};
}

Status PayloadSender::send(Connection& connection, FrameType type, Bytes head,
                           std::span<const TensorView> payload, std::shared_ptr<const void> keep) {
  const std::uint64_t raw_bytes = payload_bytes_of(payload);
  stats_.raw_bytes += raw_bytes;
  if (auto section = encode(payload)) {
    stats_.wire_bytes += section->bytes.size();
    const TensorView view = TensorView::of_bytes(section->bytes);
    return connection.send({.type = type,
                            .codec = static_cast<std::uint8_t>(codec_.lossless.kind),
                            .shuffle_width = codec_.shuffle_width,
                            .head = head,
                            .payload = {&view, 1},
                            .keep = std::move(section->keep)});
  }
  stats_.wire_bytes += raw_bytes;
  return connection.send({.type = type, .head = head, .payload = payload, .keep = std::move(keep)});
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
