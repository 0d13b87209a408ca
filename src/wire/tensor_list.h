// Direct tensor serialization: a tensor is a descriptor in the frame's head and its own bytes in the payload.
// Nothing is done per element on either side.
//
// Descriptor: u8 dtype; u8 with rank (low 4 bits), named (bit 6), requires-grad (bit 7); a varint per
// dimension; if named, a varint length and the name. In the payload each tensor starts at a multiple of 8,
// zeros between.
#pragma once

#include <cstdint>
#include <ranges>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"

namespace w5xde {

inline constexpr std::uint64_t kPayloadAlignment = 8;

struct TensorDescriptor {
  DType dtype = DType::f32;
  Shape shape;
  bool requires_grad = false;
  std::string name;  // empty: not named

  static TensorDescriptor of(const TensorView& tensor, std::string name = {});
  std::uint64_t byte_count() const { return shape.elements() * size_of(dtype); }
  bool operator==(const TensorDescriptor&) const = default;
};

using TensorList = std::vector<TensorDescriptor>;

// How long the payload of these descriptors or views is before any codec.
std::uint64_t payload_bytes_of(const std::ranges::range auto& tensors) {
  std::uint64_t end = 0;
  for (const auto& tensor : tensors) end = align_up(end, kPayloadAlignment) + tensor.byte_count();
  return end;
}

// The tensors as they lie in a payload of payload_bytes_of(tensors) bytes.
std::vector<TensorView> views_of(const TensorList& tensors, Bytes payload);

void encode_tensor_list(const TensorList& tensors, ByteWriter& writer);

// Checks count, names, shapes and the sum of all bytes against the limits before anything is sized by them.
Result<TensorList> decode_tensor_list(ByteReader& reader, const Limits& limits);

}  // namespace w5xde
