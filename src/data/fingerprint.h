#pragma once

#include <string>

#include "data/dataset.h"
#include "w5xde/result.h"

namespace w5xde {

// Tells whether a data set is the one that a run was begun with: 16 hexadecimal digits that follow from how
// many samples it has, what they are, and the bytes of those that are read: all, or 16 MiB of them that lie
// evenly among the others. An error is the data's: a sample that cannot be read.
Result<std::string> fingerprint_of(const Dataset& data);

}  // namespace w5xde
