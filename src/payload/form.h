// The form of a payload (wire/messages.h): tensors into the bytes that stand for them, and back. Where the
// form is direct nothing happens here, and nothing is copied.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "codec/gradient.h"
#include "tensor/parameter_block.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

// What a payload is in its form; no bytes where it is direct.
struct Formed {
  Coding coding;
  Bytes bytes = {};
  std::shared_ptr<const void> keep = nullptr;  // the bytes' memory

  bool direct() const { return coding.form == Form::direct; }
};

Formed form_generic(std::span<const TensorView> tensors);

// A model's floats: parameters, then buffers.
struct BlockShape {
  std::shared_ptr<const BlockLayout> parameters;
  std::uint64_t floats = 0;  // of all
};

// Floats first … first + count - 1 of a block.
struct FloatRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  std::uint64_t end() const { return first + count; }
  bool operator==(const FloatRange&) const = default;
};
// The part that begins at this float, of at most `part_floats` floats (0: of all that are left).
FloatRange part_at(std::uint64_t first, std::uint64_t part_floats, const BlockShape& shape);

// Part of a block that was formed as a whole, with a codec by chunks; it begins with a chunk.
Formed part_of(const Formed& whole, const BlockShape& shape, FloatRange range);
// Part of a block that was not.
Formed form_part(std::span<const float> floats, const BlockShape& shape, FloatRange range,
                 const GradientCodec& codec);

// Where a payload belongs, and what it must be. `block` is null where tensors are no model's floats; the
// tensor is its floats from first_float on otherwise.
struct Target {
  MutableBytes raw;
  const TensorList& tensors;
  const BlockShape* block = nullptr;
  std::uint64_t first_float = 0;

  FloatRange range() const { return {first_float, tensors[0].shape.elements()}; }
};

// The most that such a payload may have before its lossless codec; 0: it must not have this form here.
std::uint64_t formed_bytes_max(const Coding& coding, const Target& target);
// Fills the target.
Status unform(Bytes formed, const Coding& coding, const Target& target);

// What went through a sender or a receiver, and what its codecs took.
struct PayloadStats {
  std::uint64_t raw_bytes = 0;
  std::uint64_t wire_bytes = 0;
  Duration busy = Duration::zero();
};

}  // namespace w5xde
