#pragma once

#include <string_view>

#include "data/array_dataset.h"
#include "data/dataset.h"
#include "w5xde/result.h"

namespace w5xde {

// Text that a tokenizer has turned into ids. `place` is FILE[,context=N], where FILE is
//
//   ids.npy        one dimension of u8, u16, i32 or i64
//   ids.bin:u16    nothing but the ids, little-endian; also :u8, :i32, :i64
//
// The file is mapped. The vocabulary is the file's largest id + 1. windows.h says what the samples and the
// splits are.
Result<SharedDataset> open_tokens(std::string_view place, Split split);

}  // namespace w5xde
