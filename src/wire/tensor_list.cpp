#include "wire/tensor_list.h"

#include <array>
#include <utility>

#include "base/errors.h"

namespace w5xde {

namespace {

constexpr std::uint8_t kRankMask = 0x0f;
constexpr std::uint8_t kNamed = 0x40;
constexpr std::uint8_t kRequiresGrad = 0x80;

// dtype and rank: no descriptor is shorter, which bounds the count by the bytes that are there.
constexpr std::uint64_t kDescriptorBytesMin = 2;

Error cut_short() {
  return corrupt("a tensor descriptor is cut short");
}

Result<Shape> decode_shape(ByteReader& reader, std::size_t rank) {
  if (rank > kRankMax) return corrupt("a tensor of {} dimensions; at most {}", rank, kRankMax);
  std::array<std::int64_t, kRankMax> dims{};
  for (std::size_t i = 0; i < rank; ++i) dims[i] = static_cast<std::int64_t>(reader.read_varint());
  auto shape = Shape::make(std::span(dims).first(rank));
  if (!shape) return corrupt(shape.error().message);
  return shape;
}

Result<TensorDescriptor> decode_descriptor(ByteReader& reader, const Limits& limits) {
  TensorDescriptor tensor;
  const auto dtype = reader.read<std::uint8_t>();
  const auto bits = reader.read<std::uint8_t>();
  // Asked wherever a zero read past the end would be refused as something else.
  if (reader.exhausted()) return cut_short();
  W5XDE_TRY(tensor.dtype, dtype_from_wire(dtype));
  if ((bits & ~(kRankMask | kNamed | kRequiresGrad)) != 0) {
    return corrupt("tensor descriptor bits 0x{:02x} are not known", bits);
  }
  W5XDE_TRY(tensor.shape, decode_shape(reader, bits & kRankMask));
  tensor.requires_grad = (bits & kRequiresGrad) != 0;
  if ((bits & kNamed) != 0) {
    const std::uint64_t length = reader.read_varint();
    if (reader.exhausted()) return cut_short();
    if (length == 0 || length > limits.name_bytes_max) {
      return corrupt("a tensor name of {} bytes; 1 to {}", length, limits.name_bytes_max);
    }
    tensor.name = text_of(reader.read_bytes(length));
  }
  if (reader.exhausted()) return cut_short();
  return tensor;
}

}  // namespace

TensorDescriptor TensorDescriptor::of(const TensorView& tensor, std::string name) {
  return {tensor.dtype(), tensor.shape(), tensor.requires_grad(), std::move(name)};
}

std::vector<TensorView> views_of(const TensorList& tensors, Bytes payload) {
  std::vector<TensorView> views;
  views.reserve(tensors.size());
  std::uint64_t at = 0;
  for (const TensorDescriptor& tensor : tensors) {
    at = align_up(at, kPayloadAlignment);
    views.emplace_back(payload.subspan(at, tensor.byte_count()), tensor.dtype, tensor.shape,
                       tensor.requires_grad);
    at += tensor.byte_count();
  }
  return views;
}

void encode_tensor_list(const TensorList& tensors, ByteWriter& writer) {
  writer.write_varint(tensors.size());
  for (const TensorDescriptor& tensor : tensors) {
    writer.write(static_cast<std::uint8_t>(tensor.dtype));
    writer.write(static_cast<std::uint8_t>(tensor.shape.rank() | (tensor.name.empty() ? 0 : kNamed) |
                                           (tensor.requires_grad ? kRequiresGrad : 0)));
    for (const std::int64_t dim : tensor.shape.dims()) writer.write_varint(static_cast<std::uint64_t>(dim));
    if (!tensor.name.empty()) {
      writer.write_varint(tensor.name.size());
      writer.write_bytes(bytes_of(tensor.name));
    }
  }
}

Result<TensorList> decode_tensor_list(ByteReader& reader, const Limits& limits) {
  const std::uint64_t count = reader.read_varint();
  if (reader.exhausted()) return corrupt("the tensor count is missing");
  if (count > limits.tensors_max) {
    return overloaded("{} tensors in a frame; at most {}", count, limits.tensors_max);
  }
  if (count > reader.rest().size() / kDescriptorBytesMin) {
    return corrupt("{} tensors described in {} bytes", count, reader.rest().size());
  }
  TensorList tensors;
  tensors.reserve(count);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    W5XDE_TRY(TensorDescriptor tensor, decode_descriptor(reader, limits));
    // Subtractions only: neither the padding nor the sum may wrap, however high the limit.
    const std::uint64_t padding = (0 - bytes) % kPayloadAlignment;
    const std::uint64_t room = limits.payload_bytes_max - bytes;
    if (padding > room || tensor.byte_count() > room - padding) {
      return overloaded("tensors take more than the {} bytes that a payload may have",
                        limits.payload_bytes_max);
    }
    bytes += padding + tensor.byte_count();
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace w5xde
