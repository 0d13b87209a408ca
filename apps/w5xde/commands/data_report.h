// What `w5xde data` shows of a data set.
#pragma once

#include <cstdint>
#include <string>

#include "data/dataset.h"
#include "w5xde/result.h"

namespace w5xde {

// One split: how many samples, what each of them is, how the classes are spread, and the first `shown`
// samples.
Result<std::string> data_report(const std::string& split, const Dataset& data, std::uint32_t shown);

}  // namespace w5xde
