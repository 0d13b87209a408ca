#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"

namespace w5xde {

using SharedDataset = std::shared_ptr<const Dataset>;

// A contiguous tensor, what keeps its memory alive, and what to call it in an error.
struct Array {
  std::string name;
  TensorView tensor;
  std::shared_ptr<const void> owner;
  std::string field = {};  // as a model calls it; empty: "inputs", or "targets"
};

// A stray label of a billion would ask for a model with as many outputs.
inline constexpr std::uint32_t kClassesMax = 1u << 24;

// How many classes there may be, whatever labels are met.
struct ClassBounds {
  std::uint32_t at_least = 0;
  std::uint32_t at_most = kClassesMax;
  std::optional<std::int64_t> ignored = {};  // is no class, and no error
};

// The data set whose sample i is row i of all arrays. u8 inputs are pixels; other whole numbers are ids.
// Whole-number targets of any shape are classes, as many as the largest label and the bounds say; others are
// values to predict. Checks all, every label too.
Result<SharedDataset> make_array_dataset(std::vector<Array> inputs, Array targets,
                                         const ClassBounds& bounds = {});

}  // namespace w5xde
