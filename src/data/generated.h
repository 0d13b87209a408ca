// Data sets that are made, not read: the same for the same seed on every machine.
#pragma once

#include <cstdint>
#include <string_view>

#include "data/array_dataset.h"
#include "data/dataset.h"
#include "w5xde/result.h"

namespace w5xde {

// 1,000 samples of 10 normal f32 features; the class, u8, is floor(their sum) modulo 10. Test: another 1,000.
Result<SharedDataset> make_synthetic(Split split, std::uint64_t seed);

// `place` is FEATURES,CLASSES or FEATURES,CLASSES,SAMPLES (4096 if left out): normal f32 features and uniform
// i32 classes that have nothing to do with them.
Result<SharedDataset> make_random(std::string_view place, std::uint64_t seed);

}  // namespace w5xde
