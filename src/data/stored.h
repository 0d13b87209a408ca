// Data sets that are arrays in files of a general format.
#pragma once

#include <string_view>

#include "data/array_dataset.h"
#include "w5xde/result.h"

namespace w5xde {

// `place` is INPUTS,TARGETS: two .npy files, mapped.
Result<SharedDataset> open_npy(std::string_view place);

// `place` is one file, mapped, with tensors "inputs" and "targets".
Result<SharedDataset> open_safetensors(std::string_view place);

}  // namespace w5xde
