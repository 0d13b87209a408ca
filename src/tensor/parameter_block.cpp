#include "tensor/parameter_block.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace w5xde {

static_assert(BlockLayout::kAlignmentFloats * sizeof(float) == kAlignment);

std::uint64_t fingerprint_of(const BlockLayout& layout) {
  std::vector<std::byte> described;
  ByteWriter writer(described);
  for (const auto& entry : layout.entries()) {
    writer.write_varint(entry.name.size());
    writer.write_bytes(bytes_of(entry.name));
    writer.write_varint(entry.shape.rank());
    for (const std::int64_t dim : entry.shape.dims()) writer.write_varint(static_cast<std::uint64_t>(dim));
  }
  return hash64(described);
}

ParameterBlock::ParameterBlock(std::shared_ptr<const BlockLayout> layout)
    : layout_(std::move(layout)), memory_(layout_->floats() * sizeof(float)) {
  values_ = {reinterpret_cast<float*>(memory_.data()), layout_->floats()};
  std::ranges::fill(values_, 0.0f);
}

std::span<float> ParameterBlock::values_of(const BlockLayout::Entry& entry) {
  return values_.subspan(entry.offset, entry.shape.elements());
}

TensorView ParameterBlock::view(const BlockLayout::Entry& entry) const {
  const auto values = std::span<const float>(values_).subspan(entry.offset, entry.shape.elements());
  return {std::as_bytes(values), DType::f32, entry.shape, true};
}

}  // namespace w5xde
