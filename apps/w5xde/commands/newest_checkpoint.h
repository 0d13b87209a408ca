#pragma once

#include "record/run_folder.h"
#include "w5xde/result.h"

namespace w5xde {

// The newest checkpoint that can be used. Where newer ones cannot, says so on stderr, why, and which step
// takes their place.
Result<CheckpointFile> newest_checkpoint(const RunFolder& folder);

}  // namespace w5xde
