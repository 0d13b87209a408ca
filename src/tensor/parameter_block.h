#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "tensor/shape.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"

namespace w5xde {

// Where each named tensor lies in a flat block of f32. Each starts at a multiple of kAlignment bytes; what
// lies between them is padding and always zero, so that a loop over the whole block and a hash of it mean the
// same on every machine.
class BlockLayout {
 public:
  struct Entry {
    std::string name;
    Shape shape;
    std::uint64_t offset = 0;  // in floats, set by make()
  };

  // Keeps the order given. Names must be unique and not empty; the sum of sizes must stay below floats_max.
  static Result<std::shared_ptr<const BlockLayout>> make(std::vector<Entry> entries,
                                                         std::uint64_t floats_max);

  std::span<const Entry> entries() const { return entries_; }
  const Entry* find(std::string_view name) const;
  std::uint64_t floats() const { return floats_; }          // padding included
  std::uint64_t parameters() const { return parameters_; }  // padding not included
  // Zeroes what lies between the tensors of a block.
  void clear_padding(std::span<float> block) const;

  // Same for the same names, shapes and order: what two sides compare before they exchange blocks.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  BlockLayout() = default;

  std::vector<Entry> entries_;
  std::uint64_t floats_ = 0;
  std::uint64_t parameters_ = 0;
  std::uint64_t fingerprint_ = 0;
};

// The parameters of a model (or its gradient, or one optimizer state) in one aligned piece of memory, zero at
// first.
class ParameterBlock {
 public:
  explicit ParameterBlock(std::shared_ptr<const BlockLayout> layout);

  const BlockLayout& layout() const { return *layout_; }
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }
  Bytes bytes() const { return std::as_bytes(values_); }

  std::span<float> values_of(const BlockLayout::Entry& entry);
  TensorView view(const BlockLayout::Entry& entry) const;

 private:
  std::shared_ptr<const BlockLayout> layout_;
  AlignedBuffer memory_;
  std::span<float> values_;
};

// Blocks by the names of their groups, as a checkpoint has them: "parameters", "buffers",
// "optimizer.momentum", …
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // The layout of a group as it was written (order, names, shapes); null when there is no such group.
  virtual std::shared_ptr<const BlockLayout> layout_of(std::string_view group) const = 0;
  // Copies a group's tensors into a block laid out as `layout`, in whatever order that has them; invalid, and
  // `values` untouched, when names or shapes differ.
  virtual Status read(std::string_view group, const BlockLayout& layout, std::span<float> values) const = 0;
};

// A block to be saved: a view into its owner's memory. `group` is not empty and has no '/'.
struct NamedBlock {
  std::string group;
  const BlockLayout* layout = nullptr;
  std::span<const float> values;  // layout->floats() of them
};

}  // namespace w5xde
