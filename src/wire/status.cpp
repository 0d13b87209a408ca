#include "wire/status.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "wire/value.h"

namespace w5xde {

namespace {

using nlohmann::json;

// A reason is what a peer said, and what we say of it.
constexpr std::size_t kTextBytesMax = 2 * kPrintableBytesMax;

json map_of(const StatusReport& report) {
  json nodes = json::array(), departures = json::array();
  for (const auto& node : report.nodes) {
    nodes.push_back({{"name", node.name},
                     {"peer", node.peer},
                     {"engine", node.engine},
                     {"batches", node.batches},
                     {"batches_per_second", node.batches_per_second},
                     {"lanes", node.lanes},
                     {"round_trip_ms", node.round_trip_ms},
                     {"standing", node.standing},
                     {"reason", node.reason},
                     {"codec_up", node.codec_up},
                     {"codec_down", node.codec_down}});
  }
  for (const auto& departure : report.departures) {
    departures.push_back({{"name", departure.name},
                          {"seconds", departure.seconds},
                          {"reason", departure.reason},
                          {"batches", departure.batches}});
  }
  return {{"run", report.run},
          {"mode", report.mode},
          {"phase", report.phase},
          {"step", report.step},
          {"steps_total", report.steps_total},
          {"batches", report.batches},
          {"batch", report.batch},
          {"global_batch", report.global_batch},
          {"noise_scale", report.noise_scale},
          {"working", report.working},
          {"epochs", report.epochs},
          {"seconds", report.seconds},
          {"loss", report.loss ? json(*report.loss) : json()},
          {"batches_per_second", report.batches_per_second},
          {"nodes", nodes},
          {"departures", departures}};
}

// A missing key or one of another type leaves the default: this is for people to look at.
class Reader {
 public:
  explicit Reader(const json& map) : map_(map) {}
  void read(const char* key, std::string& to) const {
    if (const auto found = map_.find(key); found != map_.end() && found->is_string())
      to = printable(found->get_ref<const std::string&>(), kTextBytesMax);
  }
  void read(const char* key, std::uint64_t& to) const {
    if (const auto found = map_.find(key); found != map_.end() && found->is_number_unsigned()) to = *found;
  }
  void read(const char* key, double& to) const {
    if (const auto found = map_.find(key); found != map_.end() && found->is_number()) to = *found;
  }
  void read(const char* key, std::optional<double>& to) const {
    if (const auto found = map_.find(key); found != map_.end() && found->is_number())
      to = found->get<double>();
  }
  void read(const char* key, bool& to) const {
    if (const auto found = map_.find(key); found != map_.end() && found->is_boolean()) to = *found;
  }
  std::vector<Reader> maps(const char* key) const {
    std::vector<Reader> maps;
    const auto found = map_.find(key);
    if (found == map_.end() || !found->is_array()) return maps;
    for (const json& entry : *found) {
      if (entry.is_object()) maps.emplace_back(entry);
    }
    return maps;
  }

 private:
  const json& map_;
};

}  // namespace

void encode(const StatusReport& report, Head& head) {
  encode_value(map_of(report), head);
}

std::string to_json(const StatusReport& report) {
  return map_of(report).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<StatusReport> decode_status(Bytes head, const Limits& limits) {
  W5XDE_TRY(const json map, decode_value(head, limits));
  if (!map.is_object()) return corrupt("a status is not a map");
  const Reader reader(map);
  StatusReport report;
  reader.read("run", report.run);
  reader.read("mode", report.mode);
  reader.read("phase", report.phase);
  reader.read("step", report.step);
  reader.read("steps_total", report.steps_total);
  reader.read("batches", report.batches);
  reader.read("batch", report.batch);
  reader.read("global_batch", report.global_batch);
  reader.read("noise_scale", report.noise_scale);
  reader.read("working", report.working);
  reader.read("epochs", report.epochs);
  reader.read("seconds", report.seconds);
  reader.read("loss", report.loss);
  reader.read("batches_per_second", report.batches_per_second);
  for (const Reader& entry : reader.maps("nodes")) {
    auto& node = report.nodes.emplace_back();
    entry.read("name", node.name);
    entry.read("peer", node.peer);
    entry.read("engine", node.engine);
    entry.read("batches", node.batches);
    entry.read("batches_per_second", node.batches_per_second);
    entry.read("lanes", node.lanes);
    entry.read("round_trip_ms", node.round_trip_ms);
    entry.read("standing", node.standing);
    entry.read("reason", node.reason);
    entry.read("codec_up", node.codec_up);
    entry.read("codec_down", node.codec_down);
  }
  for (const Reader& entry : reader.maps("departures")) {
    auto& departure = report.departures.emplace_back();
    entry.read("name", departure.name);
    entry.read("seconds", departure.seconds);
    entry.read("reason", departure.reason);
    entry.read("batches", departure.batches);
  }
  return report;
}

}  // namespace w5xde
