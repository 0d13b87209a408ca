#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "w5xde/dtype.h"
#include "w5xde/shape.h"

namespace w5xde {

// Of one sample. Small enough that what describes a slot lives without an allocation.
inline constexpr std::size_t kInputsMax = 8;

// What one input of every sample is, or its targets.
struct SampleField {
  // What a model is given of it. An engine converts; what travels is the data set's own dtype.
  enum class Kind {
    number,  // as f32
    whole,   // ids, classes: as i64
    flag,    // as bool
  };

  std::string name;  // as a model calls it: "inputs", "tokens", …
  DType dtype = DType::f32;
  Shape shape;          // of one sample
  bool pixels = false;  // u8 that stands for value / 255; otherwise it is a whole number
  // Whole numbers are 0 … ids - 1; 0: not known, or some are negative. Of inputs: targets have classes().
  std::uint64_t ids = 0;

  Kind kind() const {
    if (dtype == DType::boolean) return Kind::flag;
    return is_whole_number(dtype) && !pixels ? Kind::whole : Kind::number;
  }
  std::uint64_t sample_bytes() const { return shape.elements() * size_of(dtype); }
  bool operator==(const SampleField&) const = default;
};

}  // namespace w5xde
