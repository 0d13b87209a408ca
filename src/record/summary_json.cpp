#include "record/json_fields.h"
#include "record/summary.h"

namespace w5xde {

void visit_fields(auto& visit, Like<LossStats> auto& loss) {
  visit("first", loss.first);
  visit("last", loss.last);
  visit("mean", loss.mean);
}

void visit_fields(auto& visit, Like<EvaluationStats> auto& evaluation) {
  visit("loss", evaluation.loss);
  visit("accuracy", evaluation.accuracy);
}

void visit_fields(auto& visit, Like<ResumeStats> auto& resumed) {
  visit("step", resumed.step);
  visit("seconds", resumed.seconds);
}

void visit_fields(auto& visit, Like<BestStats> auto& best) {
  visit("step", best.step);
  visit("loss", best.loss);
}

void visit_fields(auto& visit, Like<TrafficStats> auto& bytes) {
  visit("sent", bytes.sent);
  visit("received", bytes.received);
}

void visit_fields(auto& visit, Like<AuditStats> auto& audit) {
  visit("samples_expected", audit.samples_expected);
  visit("samples_committed", audit.samples_committed);
  visit("slots_missing", audit.slots_missing);
  visit("slots_twice", audit.slots_twice);
  visit("slots_leased_again", audit.slots_leased_again);
  visit("duplicates_dropped", audit.duplicates_dropped);
  visit("feedback_lost", audit.feedback_lost);
}

void visit_fields(auto& visit, Like<BatchTrial> auto& trial) {
  visit("batch", trial.batch);
  visit("samples_per_second", trial.samples_per_second);
}

void visit_fields(auto& visit, Like<GrowthStats> auto& stats) {
  visit("noise_scale", stats.noise_scale);
  visit("growths", stats.growths);
}

void visit_fields(auto& visit, Like<NodeSummary> auto& node) {
  visit("name", node.name);
  visit("batches", node.batches);
  visit("loss", node.loss);
  visit("bytes_sent", node.bytes_sent);
  visit("bytes_received", node.bytes_received);
  visit("throughput_bytes_per_second", node.throughput_bytes_per_second);
  visit("compression_ratio", node.compression_ratio);
  visit("network_seconds", node.network_seconds);
  visit("compression_seconds", node.compression_seconds);
  visit("compute_seconds", node.compute_seconds);
  visit("lanes", node.lanes);
  visit("loop_longest_seconds", node.loop_longest_seconds);
  visit("codec_up", node.codec_up);
  visit("codec_down", node.codec_down);
  visit("standing", node.standing);
  visit("reason", node.reason);
}

void visit_fields(auto& visit, Like<Summary> auto& summary) {
  visit("mode", summary.mode);
  visit("preset", summary.preset);
  visit("outcome", summary.outcome);
  visit("nodes", summary.nodes);
  visit("seconds", summary.seconds);
  visit("resumed", summary.resumed);
  visit("steps", summary.steps);
  visit("batches", summary.batches);
  visit("batches_per_second", summary.batches_per_second);
  visit("samples", summary.samples);
  visit("epochs", summary.epochs);
  visit("batch", summary.batch);
  visit("global_batch", summary.global_batch);
  visit("working", summary.working);
  visit("batch_trials", summary.batch_trials);
  visit("batch_growth", summary.batch_growth);
  visit("loss", summary.loss);
  visit("evaluation", summary.evaluation);
  visit("best", summary.best);
  visit("bytes", summary.bytes);
  visit("throughput_bytes_per_second", summary.throughput_bytes_per_second);
  visit("compression_ratio", summary.compression_ratio);
  visit("memory_bytes", summary.memory_bytes);
  visit("loop_longest_seconds", summary.loop_longest_seconds);
  visit("parameters_hash", summary.parameters_hash);
  visit("audit", summary.audit);
  visit("per_node", summary.per_node);
}

std::string to_json(const Summary& summary) {
  return Json(summary).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Summary> summary_from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return corrupt("the summary is not JSON");
  if (!json.is_object()) return corrupt("the summary is not a JSON object");
  if (!json.contains("per_node")) return corrupt("the summary has no per_node");
  Summary summary;
  std::string problem;
  FieldReader reader(json, "", MissingKey::refused, problem);
  visit_fields(reader, summary);
  if (!problem.empty()) return corrupt("the summary's " + problem);
  return summary;
}

}  // namespace w5xde
