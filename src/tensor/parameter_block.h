#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "tensor/tensor_view.h"
#include "w5xde/block_layout.h"
#include "w5xde/result.h"

namespace w5xde {

// Same for the same names, shapes and order: what two sides compare before they exchange blocks.
std::uint64_t fingerprint_of(const BlockLayout& layout);

// A model's parameters, gradient or one optimizer state, in one aligned piece of memory; zero at first.
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

// A checkpoint's blocks by the names of their groups: "parameters", "buffers", "optimizer.momentum", …
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
