#include "wire/status.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "wire/map_fields.h"

namespace w5xde {

namespace {

using nlohmann::json;

// A reason is what a peer said, and what we say of it.
constexpr std::size_t kTextBytesMax = 2 * kPrintableBytesMax;

constexpr auto kNode = [](auto& field, auto& node) {
  field("name", node.name);
  field("peer", node.peer);
  field("engine", node.engine);
  field("batches", node.batches);
  field("batches_per_second", node.batches_per_second);
  field("lanes", node.lanes);
  field("round_trip_ms", node.round_trip_ms);
  field("standing", node.standing);
  field("reason", node.reason);
  field("codec_up", node.codec_up);
  field("codec_down", node.codec_down);
};

constexpr auto kDeparture = [](auto& field, auto& departure) {
  field("name", departure.name);
  field("seconds", departure.seconds);
  field("reason", departure.reason);
  field("batches", departure.batches);
};

constexpr auto kReport = [](auto& field, auto& report) {
  field("run", report.run);
  field("mode", report.mode);
  field("phase", report.phase);
  field("age_seconds", report.age_seconds);
  field("step", report.step);
  field("steps_total", report.steps_total);
  field("batches", report.batches);
  field("batch", report.batch);
  field("global_batch", report.global_batch);
  field("noise_scale", report.noise_scale);
  field("working", report.working);
  field("epochs", report.epochs);
  field("seconds", report.seconds);
  field("loss", report.loss);
  field("batches_per_second", report.batches_per_second);
  field.maps("nodes", report.nodes, kNode);
  field.maps("departures", report.departures, kDeparture);
};

struct Writer : MapWriter {
  using MapWriter::operator();
  void operator()(const char* key, const std::optional<double>& value) {
    map[key] = value ? json(*value) : json();
  }
  void maps(const char* key, const auto& entries, const auto& fields) {
    map[key] = json::array();
    for (const auto& entry : entries) {
      Writer writer;
      fields(writer, entry);
      map[key].push_back(std::move(writer.map));
    }
  }
};

// A missing key or one of another type leaves the default: this is for people to look at.
class Reader {
 public:
  explicit Reader(const json& map) : map_(map) {}

  void operator()(const char* key, std::string& to) {
    if (const json& value = at(key); value.is_string())
      to = printable(value.get_ref<const std::string&>(), kTextBytesMax);
  }
  void operator()(const char* key, std::uint64_t& to) {
    if (const json& value = at(key); value.is_number_unsigned()) to = value;
  }
  template <class Real>
  requires std::assignable_from<Real&, double>
  void operator()(const char* key, Real& to) {
    if (const json& value = at(key); value.is_number()) to = value.get<double>();
  }
  template <class Entry>
  void maps(const char* key, std::vector<Entry>& to, const auto& fields) {
    if (!at(key).is_array()) return;
    for (const json& entry : at(key)) {
      if (!entry.is_object()) continue;
      Reader reader(entry);
      fields(reader, to.emplace_back());
    }
  }

 private:
  const json& at(const char* key) const {
    static const json kNull;
    const auto found = map_.find(key);
    return found == map_.end() ? kNull : *found;
  }

  const json& map_;
};

json map_of(const StatusReport& report) {
  Writer writer;
  kReport(writer, report);
  return std::move(writer.map);
}

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
  Reader reader(map);
  StatusReport report;
  kReport(reader, report);
  return report;
}

}  // namespace w5xde
