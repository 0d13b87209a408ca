#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "coordinator/evaluations.h"
#include "coordinator/lease_samples.h"
#include "lease/round.h"
#include "record/checkpoint.h"
#include "record/run_folder.h"
#include "run/run_config.h"
#include "wire/enrolment.h"

namespace w5xde {

// What a run begins or goes on with.
struct RunMaterial {
  CheckpointFile checkpoint;
  std::shared_ptr<const Dataset> data;
  std::shared_ptr<const Dataset> evaluation;  // null: there is none
  std::optional<MappedFile> model_file;
  std::string loss;
  std::string model_hash = {};  // SHA-256 of the model's file
};

// What the parts of a coordinator begin with, from the run's configuration and material.

Round::Options round_options(const RunConfig& config, const CheckpointInfo& from,
                             const LeaseSamples& samples);
Evaluations::Options evaluation_options(const RunConfig& config, const RunMaterial& material,
                                        const LeaseSamples& samples, const RunFolder& folder);
// Whether this model is large enough to stay in memory that nodes of this machine share.
bool shares_memory(const RunConfig& config, const CheckpointFile& from, std::uint64_t shared_bytes_min);
// Where the run had reached its end by this checkpoint, and was evaluated if there is data for it: what to
// change so that it goes on. Empty where something is left to do.
std::string what_lets_it_go_on(const RunConfig& config, const CheckpointInfo& at, const Dataset& data,
                               bool evaluates);
// What nodes are told of the run when they come.
Offer make_offer(const std::string& run, const RunConfig& config, const RunMaterial& material,
                 std::uint64_t model_fingerprint);

}  // namespace w5xde
