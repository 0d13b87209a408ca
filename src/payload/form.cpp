#include "payload/form.h"

#include <algorithm>

#include "payload/encoding.h"
#include "wire/generic_tensors.h"

namespace w5xde {

namespace {

// MessagePack says a number in nine bytes at most.
constexpr std::uint64_t kGenericNumberBytesMax = 9;
constexpr std::uint64_t kGenericTensorBytesMax = 512;

Status unform_generic(Bytes formed, const Target& target) {
  const Limits limits{.payload_bytes_max = payload_bytes_of(target.tensors)};
  W5XDE_TRY(const DecodedTensors decoded, decode_generic_tensors(formed, limits));
  if (decoded.tensors != target.tensors) return corrupt("other tensors than the head announces");
  std::ranges::copy(decoded.payload, target.raw.begin());
  return {};
}

// How many of a range's floats are parameters; the rest are buffers.
std::uint64_t parameters_in(FloatRange range, const BlockShape& shape) {
  const std::uint64_t parameters = shape.parameters->floats();
  return std::min(range.end(), parameters) - std::min(range.first, parameters);
}

bool is_whole(FloatRange range, const BlockShape& shape) {
  return range.first == 0 && range.count == shape.floats;
}

Status unform_block(Bytes formed, const Coding& coding, const Target& target) {
  const FloatRange range = target.range();
  const std::uint64_t parameters = parameters_in(range, *target.block);
  const std::uint64_t buffer_bytes = (range.count - parameters) * sizeof(float);
  if (formed.size() < buffer_bytes) return corrupt("a coded block without its buffers");
  const std::span<float> floats(reinterpret_cast<float*>(target.raw.data()), range.count);
  const Bytes coded = formed.first(formed.size() - buffer_bytes);
  const GradientCodec codec = from_wire(coding);
  W5XDE_CHECK(is_whole(range, *target.block)
                  ? decode_gradient(coded, codec, *target.block->parameters, floats.first(parameters))
                  : decode_chunks(coded, codec, floats.first(parameters)));
  std::ranges::copy(formed.last(buffer_bytes), std::as_writable_bytes(floats.subspan(parameters)).begin());
  return {};
}

}  // namespace

Formed form_generic(std::span<const TensorView> tensors) {
  std::vector<GenericTensor> generic;
  for (const TensorView& tensor : tensors) generic.push_back({"", tensor});
  auto bytes = std::make_shared<std::vector<std::byte>>();
  encode_generic_tensors(generic, *bytes);
  return {{.form = Form::generic, .bytes = bytes->size()}, *bytes, bytes};
}

FloatRange part_at(std::uint64_t first, std::uint64_t part_floats, const BlockShape& shape) {
  const std::uint64_t left = shape.floats - first;
  return {first, part_floats == 0 ? left : std::min(part_floats, left)};
}

Formed part_of(const Formed& whole, const BlockShape& shape, FloatRange range) {
  const GradientCodec codec = from_wire(whole.coding);
  // Buffers come after the last parameter's bytes.
  const auto bytes_before = [&](std::uint64_t floats) {
    const std::uint64_t parameters = std::min(floats, shape.parameters->floats());
    return chunked_bytes(codec, parameters) + (floats - parameters) * sizeof(float);
  };
  const std::uint64_t begin = bytes_before(range.first);
  Formed part{whole.coding, whole.bytes.subspan(begin, bytes_before(range.end()) - begin), whole.keep};
  part.coding.bytes = part.bytes.size();
  return part;
}

Formed form_part(std::span<const float> floats, const BlockShape& shape, FloatRange range,
                 const GradientCodec& codec) {
  const std::uint64_t parameters = parameters_in(range, shape);
  const std::uint64_t coded = chunked_bytes(codec, parameters);
  auto bytes = std::make_shared<std::vector<std::byte>>(coded + (range.count - parameters) * sizeof(float));
  encode_chunks(floats.first(parameters), codec, std::span(*bytes).first(coded));
  std::ranges::copy(std::as_bytes(floats.subspan(parameters)), std::span(*bytes).subspan(coded).begin());
  return {to_wire(codec, bytes->size()), *bytes, bytes};
}

std::uint64_t formed_bytes_max(const Coding& coding, const Target& target) {
  switch (coding.form) {
    case Form::direct:
      return target.raw.size();
    case Form::shared:
      return 0;
    case Form::generic: {
      std::uint64_t bytes = kGenericTensorBytesMax;
      for (const TensorDescriptor& tensor : target.tensors)
        bytes += kGenericTensorBytesMax + kGenericNumberBytesMax * tensor.shape.elements();
      return bytes;
    }
    case Form::gradient: {
      if (target.block == nullptr) return 0;
      const FloatRange range = target.range();
      const std::uint64_t parameters = parameters_in(range, *target.block);
      const std::uint64_t buffers = (range.count - parameters) * sizeof(float);
      const GradientCodec codec = from_wire(coding);
      if (is_whole(range, *target.block))
        return encoded_bytes_max(codec, *target.block->parameters) + buffers;
      return codec.by_chunks() ? chunked_bytes(codec, parameters) + buffers : 0;
    }
  }
  return 0;
}

Status unform(Bytes formed, const Coding& coding, const Target& target) {
  return coding.form == Form::generic ? unform_generic(formed, target) : unform_block(formed, coding, target);
}

}  // namespace w5xde
