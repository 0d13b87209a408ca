#pragma once

#include <string_view>

#include "data/array_dataset.h"
#include "data/dataset.h"
#include "w5xde/result.h"

namespace w5xde {

// Any file as a language model's data: its bytes are the ids, 256 of them. `place` is FILE[,context=N]; the
// file is mapped. windows.h says what the samples and the splits are.
Result<SharedDataset> open_text(std::string_view place, Split split);

}  // namespace w5xde
