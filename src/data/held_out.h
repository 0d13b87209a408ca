// Samples held out for evaluation, of a data set that has no test split of its own.
#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"
#include "w5xde/result.h"

namespace w5xde {

// The two parts of a data set. Together they have each of its samples once; what a sample looks like, and the
// number of classes, are those of the whole set in both.
struct Parts {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> evaluation;
};

// `fraction` of the samples, rounded, are for evaluation: one at least, and not all. Which ones depends on
// the seed and the number of samples alone. Both parts keep the order of the whole set.
Result<Parts> hold_out(const std::shared_ptr<const Dataset>& whole, double fraction, std::uint64_t seed);

}  // namespace w5xde
