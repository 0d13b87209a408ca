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

// Stores the values of one slot or two, with what the addends have in their place, from float `offset` on.
void store_sum(std::span<const float* const> values, std::uint64_t count, std::uint64_t offset,
               Engine::Addends addends, std::span<float> out);

}  // namespace w5xde::torch_engine
