// Tensors of torch, and the flat blocks of floats that travel.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <span>

#include "w5xde/engine.h"

namespace w5xde::torch_engine {

// Memory that is laid out row by row, as a tensor of the same shape.
at::Tensor view_of(const float* memory, const at::Tensor& like);

// Copies any tensor of numbers to such memory, and back.
void copy_out(const at::Tensor& from, float* to);
void copy_in(const float* from, const at::Tensor& to);

// Stores a slot's values, with what the addends have in their place, from float `offset` on. `out` may be one
// of the addends.
void store_sum(std::span<const float> values, std::uint64_t offset, Engine::Addends addends,
               std::span<float> out);

}  // namespace w5xde::torch_engine
