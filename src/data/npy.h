// .npy, NumPy's file of one array: a magic, a version, the length of a header, the header (a Python
// dictionary of dtype, order and shape, as text), the elements.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "data/array_dataset.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"

namespace w5xde {

// A file in memory; the view points into it. Versions 1 and 2, C order, little-endian. The header's length
// and syntax are checked, and that the elements fill the file exactly.
Result<TensorView> parse_npy(Bytes file);

// What stands before the elements of such an array in a file: of a dtype that NumPy has.
std::string npy_header_of(DType dtype, const Shape& shape);

// The same of an array whose type is no DType, such as '<u2': its elements, whose size is not checked.
struct NpyArray {
  std::string_view dtype;
  Shape shape;
  Bytes elements;
};
Result<NpyArray> parse_npy_array(Bytes file);

// `place` is INPUT[,INPUT…],TARGETS: files, mapped. Their names without folder and ending are the fields'.
Result<SharedDataset> open_npy(std::string_view place, std::optional<std::int64_t> ignored = std::nullopt);

}  // namespace w5xde
