// .npy, NumPy's file of one array: a magic, a version, the length of a header, the header (a Python
// dictionary of dtype, order and shape, as text), the elements.
#pragma once

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

// `place` is INPUTS,TARGETS: two files, mapped.
Result<SharedDataset> open_npy(std::string_view place);

}  // namespace w5xde
