// --train: a run that trains a part of its model. The other parameters are frozen: they are in the file that
// engines make the model from, and not in the state that travels with every step.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "learn/engine_library.h"
#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace w5xde {

// A model and what it begins with.
struct ModelWithState {
  std::unique_ptr<Engine> engine;
  AlignedBuffer memory;

  std::span<float> state() {
    return {reinterpret_cast<float*>(memory.data()), engine->description().floats()};
  }
};
// The state is zeros.
Result<ModelWithState> make_with_state(const EngineLibrary& library, const ModelOptions& options,
                                       const std::filesystem::path& file);

// Whether this is a regular expression, as --train takes it (ECMAScript's).
Status check_pattern(const std::string& pattern);
// The names of the parameters in which the pattern finds nothing. `invalid`, with all names, where it finds
// nothing in any.
Result<std::vector<std::string>> frozen_names(const std::string& pattern, const BlockLayout& parameters);

struct PartTraining {
  std::string pattern;
  std::filesystem::path model_file;   // the run's copy, replaced; empty: the model is one by name
  std::filesystem::path frozen_file;  // is written
};
// Makes of a model and its state those in which the other parameters are frozen, with the values that the
// state has. Does nothing where the pattern finds something in every name.
Status train_part(const EngineLibrary& library, const ModelOptions& options, const PartTraining& part,
                  ModelWithState& model);

}  // namespace w5xde
