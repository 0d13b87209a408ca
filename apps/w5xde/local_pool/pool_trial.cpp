#include "local_pool/pool_trial.h"

#include "local_pool/pool_run.h"
#include "local_pool/scratch.h"
#include "settings.h"

namespace w5xde {

namespace {

constexpr double kWarmUpSeconds = 1;

Words flags_of(const PoolTrial::Options& options) {
  RunConfig config = options.config;
  config.steps = config.evaluate_every = 0;
  config.epochs = config.target_accuracy = 0;
  config.seconds = kWarmUpSeconds + options.seconds;
  Words flags = {"--log", "silent", "--cores", std::to_string(options.cores)};
  for (const auto& [name, value] : given_for(config)) flags.insert(flags.end(), {"--" + name, value});
  return flags;
}

}  // namespace

Result<PoolTrial> PoolTrial::run(const Options& options, const Watch& watch) {
  const Scratch scratch("trial");
  W5XDE_TRY(const PoolOutcome outcome, run_pool({.nodes = options.nodes,
                                                 .flags = flags_of(options),
                                                 .folder = scratch.path,
                                                 .engine = options.engine,
                                                 .warm_up_seconds = kWarmUpSeconds},
                                                watch));
  double core_seconds = 0, slots = 0;
  for (const NodeSummary& node : outcome.summary.per_node) {
    core_seconds += node.compute_seconds * static_cast<double>(node.lanes);
    slots += static_cast<double>(node.batches);
  }
  if (!outcome.warm || outcome.warm->steps == 0 || slots == 0)
    return Error{ErrorKind::system, "a pool on this machine came to no step while it was tried"};
  return PoolTrial{.slot_seconds = core_seconds / slots,
                   .step_seconds = outcome.warm->seconds / static_cast<double>(outcome.warm->steps)};
}

}  // namespace w5xde
