// Tensors on the generic path: MessagePack, self-describing, one number at a time, as
//   [[name, dtype, shape, requires_grad, [number, number, …]], …]
// Presets of the original WIIIIIDE's history send tensors this way, to show what the direct path
// (tensor_list.h) is worth. Values arrive exactly, except for the payload bits of a signalling NaN; a complex
// number is two numbers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"
#include "wire/tensor_list.h"

namespace w5xde {

struct GenericTensor {
  std::string name;
  TensorView tensor;  // contiguous or strided
};

void encode_generic_tensors(std::span<const GenericTensor> tensors, std::vector<std::byte>& out);

struct DecodedTensors {
  TensorList tensors;
  std::vector<std::byte> payload;  // as views_of() takes it
};

Result<DecodedTensors> decode_generic_tensors(Bytes bytes, const Limits& limits);

}  // namespace w5xde
