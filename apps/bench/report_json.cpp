// report.json: rows of one shape in every part; a number that is not known is null.
#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/report.h"

namespace w5xde {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kParts = {std::pair{"presets", "rows"}, std::pair{"buffers", "buffer_study"},
                               std::pair{"logging", "logging_study"}};

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json numbers(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.push_back(number(value));
  return json;
}

Json json_of(const Row& row) {
  Json json = {{"preset", row.cell.preset}, {"workload", row.cell.workload},
               {"link", row.cell.link},     {"socket_buffer_bytes", row.cell.socket_buffer_bytes},
               {"log", row.cell.log},       {"warm_up_seconds", number(row.warm_up_seconds)}};
  for (const Column& column : kColumns) json[column.name] = number(row.figures.*column.value);
  json["batches_per_30s_of_rounds"] = numbers(row.rounds_batches);
  json["rounds_without_warm_up"] = row.cold_rounds;
  json["problem"] = row.problem;
  return json;
}

Json json_of(const Conditions& conditions) {
  return {{"date", conditions.date},
          {"version", conditions.version},
          {"processor", conditions.processor},
          {"cores", conditions.cores},
          {"kernel", conditions.kernel},
          {"receive_buffer_bytes_max", conditions.receive_buffer_bytes_max},
          {"send_buffer_bytes_max", conditions.send_buffer_bytes_max},
          {"nodes", conditions.nodes},
          {"seconds", number(conditions.seconds)},
          {"rounds", conditions.rounds},
          {"link", conditions.link},
          {"complete", conditions.complete}};
}

Json json_of(const Forecast& forecast, const ForecastVerdict& verdict) {
  return {{"preset", forecast.cell.preset},
          {"workload", forecast.cell.workload},
          {"link", forecast.cell.link},
          {"slot_seconds", number(median(forecast.slot_seconds))},
          {"slot_seconds_of_rounds", numbers(forecast.slot_seconds)},
          {"bottleneck", forecast.bottleneck},
          {"predicted_batches_per_30s", number(median(forecast.batches))},
          {"predicted_batches_per_30s_of_rounds", numbers(forecast.batches)},
          {"measured_batches_per_30s", number(verdict.measured)},
          {"predicted_to_measured", number(verdict.ratio)},
          {"within_25_percent", verdict.known() ? Json(verdict.close()) : Json()},
          {"problem", forecast.problem}};
}

Json json_of_published() {
  Json rows = Json::array();
  for (const Published& original : kPublished) {
    rows.push_back({{"preset", original.preset},
                    {"batches_per_30s", number(original.batches)},
                    {"throughput_bytes_per_second", number(original.bytes_per_second)},
                    {"compression_ratio", number(original.ratio)}});
  }
  return rows;
}

}  // namespace

std::string to_json(const BenchReport& report) {
  Json json = {{"conditions", json_of(report.conditions)}};
  for (const auto& [part, key] : kParts) {
    json[key] = Json::array();
    for (const Row& row : report.rows) {
      if (row.cell.part == part) json[key].push_back(json_of(row));
    }
  }
  json["predictions"] = Json::array();
  for (const Forecast& forecast : report.forecasts) {
    json["predictions"].push_back(json_of(forecast, report.verdict(forecast)));
  }
  json["original_published"] = json_of_published();
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace w5xde
