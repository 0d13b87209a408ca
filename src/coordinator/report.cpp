// What the coordinator tells people: the status while it runs, the summary at its end.
#include <algorithm>

#include "coordinator/coordinator.h"

namespace w5xde {

Status Coordinator::check_books() const {
  if (round_) {
    if (const std::string wrong = round_->imbalance(); !wrong.empty()) return corrupt(wrong);
  }
  const Limits limits;
  if (sessions_.size() + parting_.size() > limits.connections_max) return corrupt("too many connections");
  for (const auto& [id, session] : sessions_) {
    const Connection& connection = session->connection();
    if (connection.queued_bytes() > limits.send_queue_bytes_max ||
        connection.queued_frames() > limits.send_queue_frames_max)
      return corrupt(session->name() + "'s queue is past its bound");
  }
  if (step_.landings() > sessions_.size()) return corrupt("contributions land for nodes that are gone");
  return {};
}

void Coordinator::record_standing(NodeId id) {
  const Roster& roster = round_->roster();
  tally_.stood(id, std::string(name_of(roster.at(id).standing)), roster.reason(id));
}

NodeTraffic Coordinator::traffic_of(const Session& session) const {
  const LinkReport link = session.connection().link();
  return {.bytes_sent = link.bytes_received,
          .bytes_received = link.bytes_sent,
          .compression_ratio = session.compression_ratio(),
          .codec_up = codecs_.describe_up(session.id(), session.describe_up()),
          .codec_down = codecs_.describe_down(session.describe_down())};
}

Summary Coordinator::summary() const {
  std::map<NodeId, NodeTraffic> traffic;
  for (const auto& [id, session] : sessions_) {
    if (session->is_ready()) traffic[id] = traffic_of(*session);
  }
  Summary summary = tally_.summary(learner_->version(), traffic);
  summary.mode = std::string(name_of(options_.config.mode));
  summary.preset = options_.config.transport.preset;
  summary.loop_longest_seconds = seconds_of(loop_.longest_task());
  summary.steps = steps_done();
  summary.epochs = static_cast<double>(summary.samples) / static_cast<double>(material_->data->samples());
  summary.parameters_hash = learner_->parameters_hash();
  const bool cut_off = options_.config.mode == Mode::async && !(round_->drained() && waiting_.empty());
  summary.audit = tally_.audit(samples_->sampler(), cut_off);
  summary.audit.slots_leased_again += round_->slots_leased_again();
  summary.audit.duplicates_dropped += round_->duplicates_dropped();
  report_growth(summary);
  summary.working = working();
  return summary;
}

StatusReport Coordinator::status() {
  const RunConfig& config = options_.config;
  StatusReport report{.run = options_.run, .mode = std::string(name_of(config.mode))};
  report.phase = phase_ == Phase::waiting     ? "waiting for nodes"
                 : evaluations_.in_progress() ? "evaluating"
                                              : "training";
  if (over() || stopping()) report.phase = "finishing";
  if (checkpoints_.refused()) report.phase = "retrying a checkpoint";
  if (!material_) return report;
  report.step = steps_done();
  if (config.mode == Mode::sync) report.steps_total = round_->step_slots().steps();
  report_growth(report);
  report.working = working();
  tally_.report(report);
  report.epochs =
      static_cast<double>(tally_.samples_committed()) / static_cast<double>(material_->data->samples());
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready()) continue;
    const Member& member = round_->roster().at(id);
    const double slot_seconds = member.pace.seconds_per_slot;
    report.nodes.push_back({.name = session->name(),
                            .peer = session->peer(),
                            .engine = session->about().engine,
                            .batches = tally_.batches_of(id),
                            .batches_per_second = slot_seconds > 0 ? 1 / slot_seconds : 0,
                            .lanes = tally_.lanes_of(id),
                            .round_trip_ms = seconds_of(session->connection().link().round_trip) * 1e3,
                            .standing = std::string(name_of(member.standing)),
                            .reason = round_->roster().reason(id),
                            .codec_up = codecs_.describe_up(id, session->describe_up()),
                            .codec_down = codecs_.describe_down(session->describe_down())});
  }
  return report;
}

}  // namespace w5xde
