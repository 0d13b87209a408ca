#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "w5xde/result.h"
#include "w5xde/shape.h"

namespace w5xde {

// Where each named tensor lies in a flat block of f32. Each starts at a multiple of 64 bytes; what lies
// between them is padding and always zero, so that a loop over the whole block and a hash of it mean the same
// on every machine.
class BlockLayout {
 public:
  static constexpr std::uint64_t kAlignmentFloats = 16;

  struct Entry {
    std::string name;
    Shape shape;
    std::uint64_t offset = 0;  // in floats, set by make()
  };

  // Keeps the order given. Names must be unique and not empty; the sum of sizes must stay below floats_max.
  static Result<std::shared_ptr<const BlockLayout>> make(std::vector<Entry> entries,
                                                         std::uint64_t floats_max);

  std::span<const Entry> entries() const { return entries_; }
  const Entry* find(std::string_view name) const {
    const auto found = std::ranges::find(entries_, name, &Entry::name);
    return found == entries_.end() ? nullptr : &*found;
  }
  std::uint64_t floats() const { return floats_; }          // padding included
  std::uint64_t parameters() const { return parameters_; }  // padding not included
  // Zeroes what lies between the tensors of a block.
  void clear_padding(std::span<float> block) const;

 private:
  BlockLayout() = default;

  std::vector<Entry> entries_;
  std::uint64_t floats_ = 0;
  std::uint64_t parameters_ = 0;
};

inline Result<std::shared_ptr<const BlockLayout>> BlockLayout::make(std::vector<Entry> entries,
                                                                    std::uint64_t floats_max) {
  std::shared_ptr<BlockLayout> layout(new BlockLayout);  // the constructor is private
  std::unordered_set<std::string_view> names;
  for (Entry& entry : entries) {
    const std::uint64_t elements = entry.shape.elements();
    if (entry.name.empty()) return invalid("a tensor of a parameter block has no name");
    if (!names.insert(entry.name).second) return invalid("two tensors are named '" + entry.name + "'");
    if (elements > floats_max - std::min(layout->floats_, floats_max)) {
      return overloaded("tensor '" + entry.name + "' of " + entry.shape.to_string() +
                        " takes the parameter block past its limit of " + std::to_string(floats_max) +
                        " floats");
    }
    entry.offset = layout->floats_;
    layout->parameters_ += elements;
    layout->floats_ += (elements + kAlignmentFloats - 1) / kAlignmentFloats * kAlignmentFloats;
  }
  layout->entries_ = std::move(entries);
  return std::shared_ptr<const BlockLayout>(std::move(layout));
}

inline void BlockLayout::clear_padding(std::span<float> block) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::uint64_t end = entries_[i].offset + entries_[i].shape.elements();
    const std::uint64_t next = i + 1 < entries_.size() ? entries_[i + 1].offset : floats_;
    std::ranges::fill(block.subspan(end, next - end), 0.0F);
  }
}

}  // namespace w5xde
