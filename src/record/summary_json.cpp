#include "record/summary.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace w5xde {

namespace {

using Json = nlohmann::ordered_json;

// JSON has neither NaN nor infinity.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json json_of(const LossStats& loss) {
  return {{"first", number(loss.first)}, {"last", number(loss.last)}, {"mean", number(loss.mean)}};
}

Json json_of(const NodeSummary& node) {
  return {{"name", node.name},
          {"batches", node.batches},
          {"loss", json_of(node.loss)},
          {"bytes_sent", node.bytes_sent},
          {"bytes_received", node.bytes_received},
          {"throughput_bytes_per_second", number(node.throughput_bytes_per_second)},
          {"compression_ratio", number(node.compression_ratio)},
          {"network_seconds", number(node.network_seconds)},
          {"compression_seconds", number(node.compression_seconds)},
          {"compute_seconds", number(node.compute_seconds)},
          {"lanes", node.lanes},
          {"loop_longest_seconds", number(node.loop_longest_seconds)},
          {"codec_up", node.codec_up},
          {"codec_down", node.codec_down},
          {"standing", node.standing},
          {"reason", node.reason}};
}

Json json_of(const AuditStats& audit) {
  return {{"samples_expected", audit.samples_expected},
          {"samples_committed", audit.samples_committed},
          {"slots_missing", audit.slots_missing},
          {"slots_twice", audit.slots_twice},
          {"slots_leased_again", audit.slots_leased_again},
          {"duplicates_dropped", audit.duplicates_dropped},
          {"feedback_lost", audit.feedback_lost}};
}

Json json_of(const GrowthStats& stats) {
  Json growths = Json::array();
  for (const BatchGrowth& growth : stats.growths) {
    growths.push_back({{"step", growth.step},
                       {"samples_before", growth.samples_before},
                       {"samples", growth.samples},
                       {"noise_scale", number(growth.noise_scale)},
                       {"learning_rate_before", number(growth.learning_rate_before)},
                       {"learning_rate", number(growth.learning_rate)}});
  }
  return {{"noise_scale", number(stats.noise_scale)}, {"growths", std::move(growths)}};
}

Json json_of(const std::vector<BatchTrial>& trials) {
  Json list = Json::array();
  for (const BatchTrial& trial : trials)
    list.push_back({{"batch", trial.batch}, {"samples_per_second", number(trial.samples_per_second)}});
  return list;
}

// Reads the values of an object, and remembers the first that is missing or of another kind.
class ObjectReader {
 public:
  ObjectReader(const Json& json, std::string where, std::string& problem)
      : json_(json), where_(std::move(where)), problem_(problem) {
    if (!json_.is_object()) fail("");
  }

  void read(const char* key, std::uint64_t& field) {
    const Json* value = find(key);
    if (value && value->is_number_unsigned()) {
      field = value->get<std::uint64_t>();
    } else {
      fail(key);
    }
  }

  void read(const char* key, double& field) {
    const Json* value = find(key);
    if (value && value->is_number()) {
      field = value->get<double>();
    } else if (value && value->is_null()) {
      field = kUnknown;
    } else {
      fail(key);
    }
  }

  void read(const char* key, std::string& field) {
    const Json* value = find(key);
    if (value && value->is_string()) {
      field = value->get<std::string>();
    } else {
      fail(key);
    }
  }

  void read(const char* key, LossStats& loss) {
    ObjectReader reader = object(key);
    reader.read("first", loss.first);
    reader.read("last", loss.last);
    reader.read("mean", loss.mean);
  }

  ObjectReader object(const char* key) {
    static const Json kNothing;
    const Json* value = find(key);
    return {value ? *value : kNothing, where_ + key, problem_};
  }

  // A list of objects, each read by `read_entry`.
  template <class Entry, class Read>
  void read(const char* key, std::vector<Entry>& list, Read read_entry) {
    const Json* value = find(key);
    if (!value || !value->is_array()) return fail(key);
    for (const Json& entry : *value) {
      ObjectReader reader(entry, fmt::format("{}{}[{}]", prefix(), key, list.size()), problem_);
      read_entry(reader, list.emplace_back());
    }
  }

  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }

  void fail(std::string_view key) {
    if (!problem_.empty()) return;
    problem_ = key.empty() ? where_ : prefix() + std::string(key);
  }

 private:
  std::string prefix() const { return where_.empty() ? "" : where_ + '.'; }

  const Json& json_;
  std::string where_;
  std::string& problem_;
};

void read_node(ObjectReader& reader, NodeSummary& node) {
  reader.read("name", node.name);
  reader.read("batches", node.batches);
  reader.read("loss", node.loss);
  reader.read("bytes_sent", node.bytes_sent);
  reader.read("bytes_received", node.bytes_received);
  reader.read("throughput_bytes_per_second", node.throughput_bytes_per_second);
  reader.read("compression_ratio", node.compression_ratio);
  reader.read("network_seconds", node.network_seconds);
  reader.read("compression_seconds", node.compression_seconds);
  reader.read("compute_seconds", node.compute_seconds);
  reader.read("lanes", node.lanes);
  reader.read("loop_longest_seconds", node.loop_longest_seconds);
  reader.read("codec_up", node.codec_up);
  reader.read("codec_down", node.codec_down);
  reader.read("standing", node.standing);
  reader.read("reason", node.reason);
}

void read_trial(ObjectReader& reader, BatchTrial& trial) {
  reader.read("batch", trial.batch);
  reader.read("samples_per_second", trial.samples_per_second);
}

void read_growth(ObjectReader& reader, BatchGrowth& growth) {
  reader.read("step", growth.step);
  reader.read("samples_before", growth.samples_before);
  reader.read("samples", growth.samples);
  reader.read("noise_scale", growth.noise_scale);
  reader.read("learning_rate_before", growth.learning_rate_before);
  reader.read("learning_rate", growth.learning_rate);
}

std::optional<GrowthStats> read_batch_growth(ObjectReader& summary) {
  const Json* json = summary.find("batch_growth");
  if (json && json->is_null()) return std::nullopt;
  GrowthStats stats;
  ObjectReader reader = summary.object("batch_growth");
  reader.read("noise_scale", stats.noise_scale);
  reader.read("growths", stats.growths, read_growth);
  return stats;
}

AuditStats read_audit(ObjectReader reader) {
  AuditStats audit;
  reader.read("samples_expected", audit.samples_expected);
  reader.read("samples_committed", audit.samples_committed);
  reader.read("slots_missing", audit.slots_missing);
  reader.read("slots_twice", audit.slots_twice);
  reader.read("slots_leased_again", audit.slots_leased_again);
  reader.read("duplicates_dropped", audit.duplicates_dropped);
  reader.read("feedback_lost", audit.feedback_lost);
  return audit;
}

std::optional<EvaluationStats> read_evaluation(ObjectReader& summary) {
  const Json* json = summary.find("evaluation");
  if (json && json->is_null()) return std::nullopt;
  EvaluationStats evaluation;
  ObjectReader reader = summary.object("evaluation");
  reader.read("loss", evaluation.loss);
  reader.read("accuracy", evaluation.accuracy);
  return evaluation;
}

}  // namespace

std::string to_json(const Summary& summary) {
  Json evaluation;
  if (summary.evaluation) {
    evaluation = {{"loss", number(summary.evaluation->loss)},
                  {"accuracy", number(summary.evaluation->accuracy)}};
  }
  Json per_node = Json::array();
  for (const NodeSummary& node : summary.per_node) per_node.push_back(json_of(node));
  const Json json = {{"mode", summary.mode},
                     {"preset", summary.preset},
                     {"nodes", summary.nodes},
                     {"seconds", number(summary.seconds)},
                     {"steps", summary.steps},
                     {"batches", summary.batches},
                     {"batches_per_second", number(summary.batches_per_second)},
                     {"samples", summary.samples},
                     {"epochs", number(summary.epochs)},
                     {"batch", summary.batch},
                     {"global_batch", summary.global_batch},
                     {"working", summary.working},
                     {"batch_trials", json_of(summary.batch_trials)},
                     {"batch_growth", summary.batch_growth ? json_of(*summary.batch_growth) : Json()},
                     {"loss", json_of(summary.loss)},
                     {"evaluation", std::move(evaluation)},
                     {"bytes", {{"sent", summary.bytes.sent}, {"received", summary.bytes.received}}},
                     {"throughput_bytes_per_second", number(summary.throughput_bytes_per_second)},
                     {"compression_ratio", number(summary.compression_ratio)},
                     {"memory_bytes", summary.memory_bytes},
                     {"loop_longest_seconds", number(summary.loop_longest_seconds)},
                     {"parameters_hash", summary.parameters_hash},
                     {"audit", json_of(summary.audit)},
                     {"per_node", std::move(per_node)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Summary> summary_from_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return corrupt("the summary is not JSON");
  Summary summary;
  std::string problem;
  ObjectReader reader(json, "", problem);
  if (!json.is_object()) return corrupt("the summary is not a JSON object");
  reader.read("mode", summary.mode);
  reader.read("preset", summary.preset);
  reader.read("nodes", summary.nodes);
  reader.read("seconds", summary.seconds);
  reader.read("steps", summary.steps);
  reader.read("batches", summary.batches);
  reader.read("batches_per_second", summary.batches_per_second);
  reader.read("samples", summary.samples);
  reader.read("epochs", summary.epochs);
  reader.read("batch", summary.batch);
  reader.read("global_batch", summary.global_batch);
  reader.read("working", summary.working);
  reader.read("batch_trials", summary.batch_trials, read_trial);
  summary.batch_growth = read_batch_growth(reader);
  reader.read("loss", summary.loss);
  summary.evaluation = read_evaluation(reader);
  ObjectReader bytes = reader.object("bytes");
  bytes.read("sent", summary.bytes.sent);
  bytes.read("received", summary.bytes.received);
  reader.read("throughput_bytes_per_second", summary.throughput_bytes_per_second);
  reader.read("compression_ratio", summary.compression_ratio);
  reader.read("memory_bytes", summary.memory_bytes);
  reader.read("loop_longest_seconds", summary.loop_longest_seconds);
  reader.read("parameters_hash", summary.parameters_hash);
  summary.audit = read_audit(reader.object("audit"));
  if (!reader.find("per_node")) return corrupt("the summary has no per_node");
  reader.read("per_node", summary.per_node, read_node);
  if (!problem.empty())
    return corrupt(fmt::format("the summary's {} is missing or of another kind", problem));
  return summary;
}

}  // namespace w5xde
