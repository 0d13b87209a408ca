#include "tensor/parameter_block.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/hash.h"

namespace w5xde {

namespace {

constexpr std::uint64_t kAlignmentFloats = kAlignment / sizeof(float);

std::uint64_t fingerprint_of(std::span<const BlockLayout::Entry> entries) {
  std::vector<std::byte> described;
  ByteWriter writer(described);
  for (const auto& entry : entries) {
    writer.write_varint(entry.name.size());
    writer.write_bytes(bytes_of(entry.name));
    writer.write_varint(entry.shape.rank());
    for (const std::int64_t dim : entry.shape.dims()) writer.write_varint(static_cast<std::uint64_t>(dim));
  }
  return hash64(described);
}

}  // namespace

Result<std::shared_ptr<const BlockLayout>> BlockLayout::make(std::vector<Entry> entries,
                                                             std::uint64_t floats_max) {
  std::unordered_set<std::string_view> names;
  std::uint64_t offset = 0;
  std::uint64_t parameters = 0;
  for (Entry& entry : entries) {
    if (entry.name.empty()) return invalid("a tensor of a parameter block has no name");
    if (!names.insert(entry.name).second)
      return invalid(fmt::format("two tensors are named '{}'", entry.name));
    if (entry.shape.elements() > floats_max - std::min(offset, floats_max)) {
      return overloaded(fmt::format("tensor '{}' of {} takes the parameter block past its limit of {} floats",
                                    entry.name, entry.shape.to_string(), floats_max));
    }
    entry.offset = offset;
    parameters += entry.shape.elements();
    offset = align_up(offset + entry.shape.elements(), kAlignmentFloats);
  }
  std::shared_ptr<BlockLayout> layout(new BlockLayout);  // the constructor is private
  layout->fingerprint_ = fingerprint_of(entries);
  layout->entries_ = std::move(entries);
  layout->floats_ = offset;
  layout->parameters_ = parameters;
  return std::shared_ptr<const BlockLayout>(std::move(layout));
}

void BlockLayout::clear_padding(std::span<float> block) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint64_t end = entries_[i].offset + entries_[i].shape.elements();
    const std::uint64_t next = i + 1 < entries_.size() ? entries_[i + 1].offset : floats_;
    std::ranges::fill(block.subspan(end, next - end), 0.0f);
  }
}

const BlockLayout::Entry* BlockLayout::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &*found;
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
