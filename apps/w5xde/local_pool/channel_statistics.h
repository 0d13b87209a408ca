// What --normalize auto stands for.
#pragma once

#include "data/dataset.h"
#include "w5xde/result.h"
#include "w5xde/sample_preparation.h"

namespace w5xde {

// Sets mean and deviation of each channel of the samples: of all, or of 10,000 that lie evenly among more. A
// channel that is the same everywhere gets the deviation 1.
Status measure_normalization(const Dataset& data, SamplePreparation& preparation,
                             const TellProgress& progress = {});

}  // namespace w5xde
