#include "coordinator/run_report.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace w5xde {

namespace {

constexpr std::string_view kSharedMemory = "shared memory";

}  // namespace

std::uint64_t RunReport::steps_done() const {
  return config.mode == Mode::sync ? tally.step() : training.learner().version();
}

std::size_t RunReport::working() const {
  if (tally.working_at_end()) return *tally.working_at_end();
  return round.roster().limited() ? round.roster().working() : 0;
}

double RunReport::epochs(std::uint64_t samples_committed) const {
  const Sampler& sampler = samples.sampler();
  return static_cast<double>(samples_committed) /
         static_cast<double>(sampler.samples_before(sampler.slots_per_epoch()));
}

std::uint64_t RunReport::global_batch_of(std::uint64_t step) const {
  return std::uint64_t{round.step_slots().full_slots_of(step)} * config.batch;
}

std::string RunReport::describe_up(const Session& session) const {
  if (session.shares_memory() && codecs.may_share_up(session.id())) return std::string(kSharedMemory);
  return codecs.describe_up(session.id(), session.describe_up());
}

std::string RunReport::describe_down(const Session& session) const {
  if (session.shares_memory() && codecs.may_share_down()) return std::string(kSharedMemory);
  return codecs.describe_down(session.describe_down());
}

NodeTraffic RunReport::traffic_of(const Session& session) const {
  const LinkReport link = session.connection().link();
  return {.bytes_sent = link.bytes_received,
          .bytes_received = link.bytes_sent,
          .compression_ratio = session.compression_ratio(),
          .codec_up = describe_up(session),
          .codec_down = describe_down(session)};
}

Summary RunReport::summary() const {
  const Learner& learner = training.learner();
  std::map<NodeId, NodeTraffic> traffic;
  sessions.each_ready([&](const Session& session) { traffic[session.id()] = traffic_of(session); });
  Summary summary = tally.summary(learner.version(), traffic);
  // Not kept in checkpoints: it follows from the loss.
  if (summary.evaluation && !std::isnan(summary.evaluation->accuracy) && samples.evaluates_sequences())
    summary.evaluation->perplexity = std::exp(summary.evaluation->loss);
  summary.mode = std::string(name_of(config.mode));
  summary.preset = config.transport.preset;
  summary.loop_longest_seconds = seconds_of(loop.longest_task());
  summary.steps = steps_done();
  summary.epochs = epochs(summary.samples);
  summary.parameters_hash = learner.parameters_hash();
  const bool cut_off = config.mode == Mode::async && !(round.drained() && training.waiting() == 0);
  summary.audit = tally.audit(samples.sampler(), cut_off);
  summary.audit.slots_leased_again += round.slots_leased_again();
  summary.audit.duplicates_dropped += round.duplicates_dropped();
  summary.batch = config.batch;
  summary.global_batch = global_batch_of(std::max<std::uint64_t>(tally.step(), 1) - 1);
  if (const GlobalBatch* growing = training.step().global_batch())
    summary.batch_growth = {growing->noise_scale(), growing->growths()};
  summary.working = working();
  summary.ending = evaluations.ending();
  return summary;
}

CheckpointInfo RunReport::checkpoint_info() const {
  const Learner& learner = training.learner();
  CheckpointInfo info = tally.info(round.step_slots().first_slot_of(tally.step()));
  info.version = learner.version();
  info.seed = config.seed;
  info.optimizer_steps = learner.optimizer_steps();
  info.steps_without_gradient = learner.steps_without_gradient();
  info.slots_leased_again += round.slots_leased_again();
  info.duplicates_dropped += round.duplicates_dropped();
  info.model = config.model;
  info.model_fingerprint = learner.model_fingerprint();
  if (const GlobalBatch* growing = training.step().global_batch()) info.batch_growth = growing->state();
  evaluations.add_to(info);
  return info;
}

Tally::Progress RunReport::progress() const {
  return {steps_done(), training.learner().learning_rate(), static_cast<unsigned>(round.nodes())};
}

void RunReport::add_to(StatusReport& status) const {
  status.step = steps_done();
  if (config.mode == Mode::sync) status.steps_total = round.step_slots().steps();
  status.batch = config.batch;
  status.global_batch = global_batch_of(round.front_step());
  if (const GlobalBatch* growing = training.step().global_batch())
    status.noise_scale = std::isnan(growing->noise_scale()) ? 0 : growing->noise_scale();
  status.working = working();
  tally.report(status);
  status.epochs = epochs(tally.samples_committed());
  sessions.each_ready([&](const Session& session) {
    const NodeId id = session.id();
    const Member& member = round.roster().at(id);
    const double slot_seconds = member.pace.seconds_per_slot;
    status.nodes.push_back({.name = session.name(),
                            .peer = session.peer(),
                            .engine = session.about().engine,
                            .batches = tally.batches_of(id),
                            .batches_per_second = slot_seconds > 0 ? 1 / slot_seconds : 0,
                            .lanes = tally.lanes_of(id),
                            .round_trip_ms = seconds_of(session.connection().link().round_trip) * 1e3,
                            .standing = std::string(name_of(member.standing)),
                            .reason = round.roster().reason(id),
                            .codec_up = describe_up(session),
                            .codec_down = describe_down(session)});
  });
}

}  // namespace w5xde
