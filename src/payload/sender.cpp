#include "payload/sender.h"

#include <algorithm>

#include "wire/tensor_list.h"

namespace w5xde {

namespace {

// Smaller payloads are gone before a codec could have begun.
constexpr std::uint64_t kConsideredBytes = 16 * kKiB;

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

SectionCodec PayloadSender::choose(const Lossless& lossless, std::uint64_t raw_bytes, FrameSender& link) {
  if (lossless.fixed != nullptr) return *lossless.fixed;
  if (lossless.policy == nullptr || raw_bytes < kConsideredBytes) return {};
  return lossless.policy->choose(raw_bytes, link.outgoing_bytes_per_second());
}

std::optional<PayloadSender::Section> PayloadSender::encode(std::span<const TensorView> payload,
                                                            const SectionCodec& codec,
                                                            LosslessPolicy* policy) {
  const std::uint64_t raw_bytes = payload_bytes_of(payload);
  if (codec.lossless.kind == LosslessKind::none || raw_bytes == 0) return std::nullopt;
  const Instant begun = clock_.now();
  const Bytes raw = payload.size() == 1 ? payload[0].bytes() : join(payload, joined_.take(raw_bytes));
  auto encoded = std::make_shared<AlignedBuffer>(section_bytes_max(raw.size(), codec.chunk_log2));
  const auto tried = policy != nullptr ? policy->chunks_to_try() : SectionEncoder::Tried();
  const Bytes section =
      encoder_.encode_into({encoded->data(), encoded->capacity()}, raw, codec, pool_, tried);
  const Duration busy = clock_.now() - begun;
  stats_.busy += busy;
  if (policy != nullptr) {
    policy->measured(codec, raw.size(), std::min(section.size(), raw.size()), seconds_of(busy), 0,
                     encoder_.chunk_bytes());
  }
  if (section.size() >= raw.size()) return std::nullopt;
  return Section{section, std::move(encoded)};
}

Status PayloadSender::send(FrameSender& link, FrameType type, Bytes head, Payload payload) {
  stats_.raw_bytes += payload_bytes_of(payload.tensors);
  TensorView formed;
  if (!payload.formed.direct()) {
    formed = TensorView::of_bytes(payload.formed.bytes);
    payload.tensors = {&formed, 1};
    payload.keep = std::move(payload.formed.keep);
  }
  const std::uint64_t bytes = payload_bytes_of(payload.tensors);
  const SectionCodec codec = choose(payload.lossless, bytes, link);
  LosslessPolicy* policy = payload.lossless.fixed == nullptr ? payload.lossless.policy : nullptr;
  if (auto section = encode(payload.tensors, codec, policy)) {
    stats_.wire_bytes += section->bytes.size();
    const TensorView view = TensorView::of_bytes(section->bytes);
    return link.send({.type = type,
                      .codec = static_cast<std::uint8_t>(codec.lossless.kind),
                      .shuffle_width = codec.shuffle_width,
                      .head = head,
                      .payload = {&view, 1},
                      .keep = std::move(section->keep)});
  }
  stats_.wire_bytes += bytes;
  return link.send({.type = type, .head = head, .payload = payload.tensors, .keep = std::move(payload.keep)});
}

}  // namespace w5xde
