// What a run computes with: its model, and the engine.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>

#include "data/dataset.h"
#include "run/run_config.h"
#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace w5xde {

// Whether its ending is one that TorchScript files have.
bool is_named_as_script(const std::filesystem::path& file);
// Whether --model names a file: it is there, whatever its ending is, or it is named as one.
bool is_script(const std::string& model);
// A run's model, for samples as this data has them.
ModelOptions model_options(const RunConfig& config, const Dataset& data, const std::string& device);

// XXH3-128 of the first of these files that is there; empty where none is.
Result<std::string> hash_of_first(std::initializer_list<std::filesystem::path> files);

// Where this user's nodes keep models that are files.
std::filesystem::path default_model_cache();

// Where the engine lies: beside this program as it was built, or as it is installed.
Result<std::filesystem::path> find_engine(const std::string& asked_for);

}  // namespace w5xde
