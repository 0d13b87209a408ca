#include "payload/block_encoder.h"

#include <memory>
#include <utility>
#include <vector>

#include "payload/encoding.h"

namespace w5xde {

BlockEncoder::BlockEncoder(BlockShape shape, float momentum)
    : shape_(std::move(shape)), gradients_({}, shape_.parameters, momentum) {}

Formed BlockEncoder::encode(std::span<const float> block, const GradientCodec& codec, bool same_step) {
  return encode_with(block, codec, [&](MutableBytes out, std::span<const float> parameters) {
    return gradients_.encode_into(out, parameters, same_step);
  });
}

Formed BlockEncoder::encode_fresh(std::span<const float> block, const GradientCodec& codec) {
  return encode_with(block, codec, [&](MutableBytes out, std::span<const float> parameters) {
    return gradients_.encode_fresh_into(out, parameters);
  });
}

template <class Encode>
Formed BlockEncoder::encode_with(std::span<const float> block, const GradientCodec& codec,
                                 const Encode& encode) {
  gradients_.set_codec(codec);
  const std::uint64_t parameters = shape_.parameters->floats();
  const Bytes buffers = std::as_bytes(block.subspan(parameters));
  auto bytes = std::make_shared<std::vector<std::byte>>();
  // Straight to where it is sent from.
  bytes->resize(encoded_bytes_max(codec, *shape_.parameters));
  bytes->resize(encode(*bytes, block.first(parameters)).size());
  bytes->insert(bytes->end(), buffers.begin(), buffers.end());
  return {to_wire(codec, bytes->size()), *bytes, bytes};
}

}  // namespace w5xde
