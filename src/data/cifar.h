// CIFAR-10 as its authors publish it in binary: files of 10,000 images, each a byte that is the class and
// 3,072 bytes, 32 × 32 of red, of green, of blue.
#pragma once

#include <string_view>

#include "data/array_dataset.h"
#include "data/dataset.h"
#include "w5xde/result.h"

namespace w5xde {

// `folder` holds data_batch_1.bin …, and test_batch.bin, which is the test split. Files are mapped.
Result<SharedDataset> open_cifar10(std::string_view folder, Split split);

}  // namespace w5xde
