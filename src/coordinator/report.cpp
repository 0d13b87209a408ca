// What the coordinator tells people: the status while it runs, the summary at its end.
#include <algorithm>

#include "coordinator/coordinator.h"

namespace w5xde {

namespace {

// A node that came back is the same node.
void merge(std::vector<NodeSummary>& nodes, const NodeSummary& stay) {
  const auto same = std::ranges::find(nodes, stay.name, &NodeSummary::name);
  if (same == nodes.end()) {
    nodes.push_back(stay);
    return;
  }
  const double before = static_cast<double>(same->batches), here = static_cast<double>(stay.batches);
  if (stay.batches > 0) {
    if (same->batches == 0) same->loss.first = stay.loss.first;
    same->loss.last = stay.loss.last;
    same->loss.mean =
        ((same->batches == 0 ? 0 : same->loss.mean * before) + stay.loss.mean * here) / (before + here);
  }
  same->batches += stay.batches;
  same->bytes_sent += stay.bytes_sent;
  same->bytes_received += stay.bytes_received;
  same->network_seconds += stay.network_seconds;
  same->compression_seconds += stay.compression_seconds;
  same->loop_longest_seconds = std::max(same->loop_longest_seconds, stay.loop_longest_seconds);
  same->compute_seconds += stay.compute_seconds;
  same->lanes = std::max(same->lanes, stay.lanes);
  same->compression_ratio = stay.compression_ratio;
  same->codec_up = stay.codec_up;
  same->codec_down = stay.codec_down;
  same->standing = stay.standing;
  same->reason = stay.reason;
}

}  // namespace

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
  if (landings_.size() > sessions_.size()) return corrupt("contributions land for nodes that are gone");
  return {};
}

// The slots that are committed must be all up to the last of them. Where an async run is cut off, slots
// before that may still be out: they are not lost, since the run goes on from before them.
AuditStats Coordinator::audit() const {
  const Sampler& sampler = batches_->sampler();
  AuditStats audit{.samples_expected = sampler.samples_before(committed_slots_.end()),
                   .samples_committed = counted_.samples_committed,
                   .slots_missing = committed_slots_.missing(),
                   .slots_twice = committed_slots_.twice(),
                   .slots_leased_again = counted_.slots_leased_again + round_->slots_leased_again(),
                   .duplicates_dropped = counted_.duplicates_dropped + round_->duplicates_dropped(),
                   .feedback_lost = counted_.feedback_lost};
  if (options_.config.mode == Mode::async && !(round_->drained() && waiting_.empty())) {
    audit.slots_missing = 0;
    audit.samples_expected = 0;
    for (const auto& [first, end] : committed_slots_.after(0))
      audit.samples_expected += sampler.samples_before(end) - sampler.samples_before(first);
  }
  return audit;
}

// However often nodes come and go, and under however many names, what is kept of them has an end.
void Coordinator::keep_stay(const NodeSummary& stay) {
  const bool is_known = std::ranges::find(left_, stay.name, &NodeSummary::name) != left_.end();
  NodeSummary kept = stay;
  if (!is_known && left_.size() >= Limits{}.node_names_max) kept.name = "others";
  merge(left_, kept);
}

Summary Coordinator::summary() const {
  const RunConfig& config = options_.config;
  Summary summary;
  summary.mode = std::string(name_of(config.mode));
  summary.preset = config.transport.preset;
  summary.seconds = seconds();
  summary.loop_longest_seconds = seconds_of(loop_.longest_task());
  const double here = summary.seconds - seconds_before_;
  const auto rate = [&](std::uint64_t count) { return here > 0 ? static_cast<double>(count) / here : 0; };
  summary.steps = steps_done();
  summary.batches = counted_.slots_committed;
  summary.batches_per_second = rate(batches_here_);
  summary.samples = counted_.samples_committed;
  summary.epochs = static_cast<double>(summary.samples) / static_cast<double>(material_->data->samples());
  if (counted_.slots_committed > 0) {
    summary.loss = {counted_.loss_first, counted_.loss_last,
                    counted_.loss_total / static_cast<double>(learner_->version())};
  }
  if (evaluated_version_ == learner_->version()) summary.evaluation = evaluation_;
  if (!summary.evaluation && counted_.evaluation_loss) {
    summary.evaluation = {*counted_.evaluation_loss, counted_.evaluation_accuracy.value_or(kUnknown)};
  }
  summary.parameters_hash = learner_->parameters_hash();
  summary.audit = audit();
  report_growth(summary);
  summary.working = crew();
  for (const NodeSummary& stay : left_) merge(summary.per_node, stay);
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready()) continue;
    session->update_tally();
    session->tally.codec_up = describe_up(*session);
    session->tally.codec_down = describe_down(*session);
    session->tally.standing = name_of(round_->roster().at(id).standing);
    session->tally.reason = round_->roster().reason(id);
    merge(summary.per_node, session->tally);
  }
  std::ranges::sort(summary.per_node, {}, &NodeSummary::name);
  summary.nodes = summary.per_node.size();
  double raw = 0, wire = 0;
  for (NodeSummary& node : summary.per_node) {
    const std::uint64_t bytes = node.bytes_sent + node.bytes_received;
    node.throughput_bytes_per_second = rate(bytes);
    // The totals are the coordinator's view.
    summary.bytes.sent += node.bytes_received;
    summary.bytes.received += node.bytes_sent;
    wire += static_cast<double>(bytes);
    raw += static_cast<double>(bytes) * (node.compression_ratio > 0 ? node.compression_ratio : 1);
  }
  summary.throughput_bytes_per_second = rate(summary.bytes.sent + summary.bytes.received);
  if (wire > 0) summary.compression_ratio = raw / wire;
  return summary;
}

StatusReport Coordinator::status() {
  const RunConfig& config = options_.config;
  StatusReport report{.run = options_.run, .mode = std::string(name_of(config.mode))};
  report.phase = phase_ == Phase::waiting ? "waiting for nodes" : evaluating_ ? "evaluating" : "training";
  if (over() || stopping_) report.phase = "finishing";
  if (retrying_) report.phase = "retrying a checkpoint";
  if (!material_) return report;
  report.step = steps_done();
  if (config.mode == Mode::sync) report.steps_total = round_->step_slots().steps();
  report_growth(report);
  report.working = crew();
  report.batches = counted_.slots_committed;
  report.epochs =
      static_cast<double>(counted_.samples_committed) / static_cast<double>(material_->data->samples());
  report.seconds = seconds();
  if (counted_.slots_committed > 0) report.loss = counted_.loss_last;
  report.batches_per_second = batches_per_second_;
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready()) continue;
    const Member& member = round_->roster().at(id);
    const double slot_seconds = member.pace.seconds_per_slot;
    report.nodes.push_back({.name = session->name(),
                            .peer = session->peer(),
                            .engine = session->about().engine,
                            .batches = session->tally.batches,
                            .batches_per_second = slot_seconds > 0 ? 1 / slot_seconds : 0,
                            .lanes = session->tally.lanes,
                            .round_trip_ms = seconds_of(session->connection().link().round_trip) * 1e3,
                            .standing = std::string(name_of(member.standing)),
                            .reason = round_->roster().reason(id),
                            .codec_up = describe_up(*session),
                            .codec_down = describe_down(*session)});
  }
  report.departures.assign(departures_.begin(), departures_.end());
  return report;
}

}  // namespace w5xde
