// The result of a run without any pool.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/dataset.h"
#include "record/checkpoint.h"
#include "run/run_config.h"

namespace w5xde {

// A run begins with a checkpoint of step 0: of the fake engine's model.
Status write_first_checkpoint(const std::filesystem::path& path, std::uint64_t seed, Disk& disk);

// The hash of the parameters after the run's steps: slot after slot, added up and applied right here, from
// the checkpoint of step 0 on.
std::string plain_hash(const RunConfig& config, const std::shared_ptr<const Dataset>& data,
                       const CheckpointFile& checkpoint);

// What all slots of the run contribute to the parameters together, with the engine of constant gradients.
std::vector<double> sum_of_gradients(const RunConfig& config, const std::shared_ptr<const Dataset>& data);

}  // namespace w5xde
