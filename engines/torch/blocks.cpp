#include "blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace w5xde::torch_engine {

at::Tensor view_of(const float* memory, const at::Tensor& like) {
  // from_blob has no const; nothing writes through a view of state.
  return at::from_blob(const_cast<float*>(memory), like.sizes(), at::kFloat);
}

void copy_out(const at::Tensor& from, float* to) {
  if (from.is_cpu() && from.scalar_type() == at::kFloat && from.is_contiguous()) {
    std::memcpy(to, from.data_ptr<float>(), static_cast<std::size_t>(from.numel()) * sizeof(float));
  } else {
    const at::NoGradGuard data_only;
    view_of(to, from).copy_(from);
  }
}

void copy_in(const float* from, const at::Tensor& to) {
  if (to.is_cpu() && to.scalar_type() == at::kFloat) {  // contiguous: the engine made it so
    std::memcpy(to.data_ptr<float>(), from, static_cast<std::size_t>(to.numel()) * sizeof(float));
  } else if (to.is_cpu()) {
    // A counter that was averaged over a step's slots may be a little below the whole number that it is.
    *to.data_ptr<std::int64_t>() = std::llround(*from);
  } else {
    const at::NoGradGuard data_only;
    to.copy_(view_of(from, to));
  }
}

// Tile by tile, so that every block is read and written once.
void store_sum(std::span<const float> values, std::uint64_t offset, Engine::Addends addends,
               std::span<float> out) {
  constexpr std::uint64_t kTile = 4096;
  alignas(64) std::array<float, kTile> tile;
  for (std::uint64_t first = 0; first < values.size(); first += kTile) {
    const std::uint64_t size = std::min<std::uint64_t>(kTile, values.size() - first);
    const float* sum = values.data() + first;
    for (const float* addend : addends) {
      const float* other = addend + offset + first;
      for (std::uint64_t k = 0; k < size; ++k) tile[k] = other[k] + sum[k];
      sum = tile.data();
    }
    std::memcpy(out.data() + offset + first, sum, size * sizeof(float));
  }
}

}  // namespace w5xde::torch_engine
