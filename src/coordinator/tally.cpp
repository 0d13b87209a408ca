#include "coordinator/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace w5xde {

namespace {

constexpr auto kProgressEvery = std::chrono::seconds(1);
constexpr std::size_t kDeparturesKept = 20;

double seconds_of_ns(std::uint64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

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

NodeSummary with_traffic(NodeSummary summary, const NodeTraffic& traffic) {
  summary.bytes_sent = traffic.bytes_sent;
  summary.bytes_received = traffic.bytes_received;
  summary.compression_ratio = traffic.compression_ratio;
  summary.codec_up = traffic.codec_up;
  summary.codec_down = traffic.codec_down;
  return summary;
}

}  // namespace

void Tally::resume(const CheckpointInfo& from, std::uint64_t steps) {
  counted_ = from;
  committed_slots_ = CommittedSlots(from.data_cursor());
  for (const auto& [first, end] : from.slots_ahead) committed_slots_.add(first, end - first);
  seconds_before_ = from.seconds;
  rows_.resume(steps);
  if (from.slots_committed > 0) resumed_at_ = steps;
  recorder_.resume({.step = steps, .checkpoint_step = from.step, .seconds = from.seconds});
}

double Tally::seconds() const {
  if (begun_ == Instant()) return seconds_before_;
  return seconds_before_ + seconds_of((ended_ != Instant() ? ended_ : loop_.now()) - begun_);
}

void Tally::event(const std::string& text) {
  log_.normal("{}", text);
  recorder_.add(RunDatabase::EventRow{seconds(), text});
}

void Tally::joined(NodeId id, const std::string& name, const std::string& peer, const Ready& about) {
  if (engine_.empty()) engine_ = about.engine;
  if (processor_.empty()) processor_ = about.processor;
  event(fmt::format("{} joined from {} ({})", name, peer, about.engine));
  if (about.engine != engine_ || about.processor != processor_) {
    log_.normal(
        "{} computes with {} on {}, others with {} on {}: the last bits of the result may depend on who "
        "computes what",
        name, about.engine, about.processor, engine_, processor_);
  }
  Stay& stay = stays_[id];
  stay.summary.name = name;
  stay.row = {.name = name, .peer = peer, .engine = about.engine, .joined_seconds = seconds()};
  recorder_.add(stay.row);
}

void Tally::computed(NodeId id, const Contribution& contribution) {
  NodeSummary& node = stays_.at(id).summary;
  node.compute_seconds += seconds_of_ns(contribution.compute_ns);
  node.lanes = std::max<std::uint64_t>(node.lanes, contribution.lanes);
  node.network_seconds += seconds_of_ns(contribution.wait_ns);
  node.compression_seconds += seconds_of_ns(contribution.codec_ns);
  node.loop_longest_seconds = std::max(node.loop_longest_seconds, seconds_of_ns(contribution.loop_ns));
}

void Tally::counted(NodeId id, const Contribution& contribution) {
  NodeSummary& node = stays_.at(id).summary;
  const double loss = contribution.loss_sum / static_cast<double>(contribution.samples);
  if (node.batches == 0) node.loss.first = loss;
  node.loss.last = loss;
  const double before = node.batches == 0 ? 0 : node.loss.mean * static_cast<double>(node.batches);
  node.batches += contribution.block.slot_count;
  node.loss.mean = (before + loss * contribution.block.slot_count) / static_cast<double>(node.batches);
}

void Tally::stood(NodeId id, const Roster& roster) {
  NodeSummary& node = stays_.at(id).summary;
  node.standing = name_of(roster.at(id).standing);
  node.reason = roster.reason(id);
}

void Tally::feedback_lost(const std::string& name) {
  ++counted_.feedback_lost;
  event(fmt::format("{} left without handing over its error feedback: what its codec had held back is lost",
                    name));
}

void Tally::record_departure(NodeId id, const std::string& reason) {
  const Stay& stay = stays_.at(id);
  RunDatabase::NodeRow row = stay.row;
  row.left_seconds = seconds();
  row.reason = reason;
  row.batches = stay.summary.batches;
  recorder_.add(row);
}

void Tally::left(NodeId id, const NodeTraffic& traffic, const std::string& reason) {
  const auto stay = stays_.extract(id);
  const NodeSummary& summary = stay.mapped().summary;
  keep(with_traffic(summary, traffic));
  departures_.push_back(
      {.name = summary.name, .seconds = seconds(), .reason = reason, .batches = summary.batches});
  if (departures_.size() > kDeparturesKept) departures_.pop_front();
}

// However often nodes come and go, and under however many names, what is kept of them has an end.
void Tally::keep(NodeSummary stay) {
  const bool is_known = std::ranges::find(left_, stay.name, &NodeSummary::name) != left_.end();
  if (!is_known && left_.size() >= Limits{}.node_names_max) stay.name = "others";
  merge(left_, stay);
}

void Tally::committed(const Commit& commit) {
  if (counted_.slots_committed == 0) counted_.loss_first = commit.loss;
  counted_.loss_last = commit.loss;
  counted_.loss_total += commit.loss;
  counted_.samples_committed += commit.samples;
  counted_.slots_committed += commit.slots;
  committed_slots_.add(commit.first_slot, commit.slots);
  counted_.evaluation_loss.reset();
  counted_.evaluation_accuracy.reset();
  batches_here_ += commit.slots;
  rows_.committed(commit.loss, commit.samples, commit.slots, loop_.now());
}

void Tally::record_steps(const Progress& progress) {
  auto row = rows_.take(loop_.now());
  if (!row) return;
  row->step = progress.steps;
  row->learning_rate = progress.learning_rate;
  row->nodes = progress.nodes;
  row->seconds = seconds();
  recorder_.add(*row);
}

void Tally::evaluated(const EvaluationStats& evaluation, std::uint64_t samples, std::uint64_t steps) {
  const bool classifies = !std::isnan(evaluation.accuracy);
  counted_.evaluation_loss = evaluation.loss;
  if (classifies) counted_.evaluation_accuracy = evaluation.accuracy;
  recorder_.add(RunDatabase::EvaluationRow{
      .step = steps, .loss = evaluation.loss, .accuracy = evaluation.accuracy, .samples = samples});
  event(fmt::format("evaluation at step {}: loss {:.4f}{}", steps, evaluation.loss,
                    classifies ? fmt::format(", accuracy {:.4f}", evaluation.accuracy) : ""));
}

bool Tally::progress_due() {
  if (loop_.now() < progress_due_) return false;
  progress_due_ = loop_.now() + kProgressEvery;
  return true;
}

CheckpointInfo Tally::info(std::uint64_t next_slot) const {
  CheckpointInfo info = counted_;
  info.next_slot = next_slot;
  info.slots_ahead = committed_slots_.after(next_slot);
  info.seconds = seconds();
  if (!engine_.empty()) info.engine = engine_;
  if (!processor_.empty()) info.processor = processor_;
  return info;
}

// The slots that are committed must be all up to the last of them. Where an async run is cut off, slots
// before that may still be out: they are not lost, since the run goes on from before them.
AuditStats Tally::audit(const Sampler& sampler, bool cut_off) const {
  AuditStats audit{.samples_expected = sampler.samples_before(committed_slots_.end()),
                   .samples_committed = counted_.samples_committed,
                   .slots_missing = committed_slots_.missing(),
                   .slots_twice = committed_slots_.twice(),
                   .slots_leased_again = counted_.slots_leased_again,
                   .duplicates_dropped = counted_.duplicates_dropped,
                   .feedback_lost = counted_.feedback_lost};
  if (cut_off) {
    audit.slots_missing = 0;
    audit.samples_expected = 0;
    for (const auto& [first, end] : committed_slots_.after(0))
      audit.samples_expected += sampler.samples_before(end) - sampler.samples_before(first);
  }
  return audit;
}

Summary Tally::summary(std::uint64_t versions, const std::map<NodeId, NodeTraffic>& traffic) const {
  Summary summary;
  summary.seconds = seconds();
  const double here = summary.seconds - seconds_before_;
  if (resumed_at_) summary.resumed = ResumeStats{.step = *resumed_at_, .seconds = here};
  const auto rate = [&](std::uint64_t count) { return here > 0 ? static_cast<double>(count) / here : 0; };
  summary.batches = counted_.slots_committed;
  summary.batches_per_second = rate(batches_here_);
  summary.samples = counted_.samples_committed;
  if (counted_.slots_committed > 0) {
    summary.loss = {counted_.loss_first, counted_.loss_last,
                    counted_.loss_total / static_cast<double>(versions)};
  }
  if (counted_.evaluation_loss)
    summary.evaluation = {*counted_.evaluation_loss, counted_.evaluation_accuracy.value_or(kUnknown)};
  summary.per_node = left_;
  for (const auto& [id, stay] : stays_) merge(summary.per_node, with_traffic(stay.summary, traffic.at(id)));
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

void Tally::report(StatusReport& report) const {
  report.batches = counted_.slots_committed;
  report.seconds = seconds();
  if (counted_.slots_committed > 0) report.loss = counted_.loss_last;
  report.batches_per_second = rows_.batches_per_second();
  report.departures.assign(departures_.begin(), departures_.end());
}

}  // namespace w5xde
