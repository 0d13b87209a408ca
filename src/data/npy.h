// .npy, NumPy's file of one array: a magic, a version, the length of a header, the header (a Python
// dictionary of dtype, order and shape, as text), the elements.
#pragma once

#include <string_view>

#include "base/bytes.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"

namespace w5xde {

// A file that is in memory; the view points into it. Versions 1 and 2, C order, little-endian. Everything is
// checked: the header's length and syntax, and that the elements fill the file exactly.
Result<TensorView> parse_npy(Bytes file);

}  // namespace w5xde
