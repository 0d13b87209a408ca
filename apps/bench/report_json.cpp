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

double number_in(const Json& json) {
  return json.is_null() ? kUnknown : json.get<double>();
}

Json json_of(const Row& row) {
  Json json = {{"preset", row.cell.preset}, {"workload", row.cell.workload},
               {"link", row.cell.link},     {"socket_buffer_bytes", row.cell.socket_buffer_bytes},
               {"log", row.cell.log},       {"warm_up_seconds", number(row.warm_up_seconds)}};
  for (const Column& column : kColumns) json[column.name] = number(row.figures.*column.value);
  Json rounds = Json::array();
  for (const double batches : row.rounds_batches) rounds.push_back(number(batches));
  json["batches_per_30s_of_rounds"] = std::move(rounds);
  json["rounds_without_warm_up"] = row.cold_rounds;
  json["problem"] = row.problem;
  return json;
}

Row row_in(const Json& json, const std::string& part) {
  Row row{.cell = {.part = part,
                   .preset = json.at("preset"),
                   .workload = json.at("workload"),
                   .link = json.at("link"),
                   .socket_buffer_bytes = json.at("socket_buffer_bytes"),
                   .log = json.at("log")},
          .warm_up_seconds = number_in(json.at("warm_up_seconds")),
          .figures = {},
          .rounds_batches = {},
          .cold_rounds = json.at("rounds_without_warm_up"),
          .problem = json.at("problem")};
  for (const Column& column : kColumns) row.figures.*column.value = number_in(json.at(column.name));
  for (const Json& round : json.at("batches_per_30s_of_rounds")) {
    row.rounds_batches.push_back(number_in(round));
  }
  return row;
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

Conditions conditions_in(const Json& json) {
  return {.date = json.at("date"),
          .version = json.at("version"),
          .processor = json.at("processor"),
          .kernel = json.at("kernel"),
          .cores = json.at("cores"),
          .receive_buffer_bytes_max = json.at("receive_buffer_bytes_max"),
          .send_buffer_bytes_max = json.at("send_buffer_bytes_max"),
          .nodes = json.at("nodes"),
          .rounds = json.at("rounds"),
          .seconds = number_in(json.at("seconds")),
          .link = json.at("link"),
          .complete = json.at("complete")};
}

Json rounds_of(const Forecast& forecast, double Forecast::Said::*value) {
  Json rounds = Json::array();
  for (const Forecast::Said& said : forecast.rounds) rounds.push_back(number(said.*value));
  return rounds;
}

Json json_of(const Forecast& forecast, const ForecastVerdict& verdict) {
  return {{"preset", forecast.cell.preset},
          {"workload", forecast.cell.workload},
          {"link", forecast.cell.link},
          {"slot_seconds", number(forecast.slot_seconds())},
          {"slot_seconds_of_rounds", rounds_of(forecast, &Forecast::Said::slot_seconds)},
          {"bottleneck", forecast.bottleneck},
          {"predicted_batches_per_30s", number(forecast.batches())},
          {"predicted_batches_per_30s_of_rounds", rounds_of(forecast, &Forecast::Said::batches)},
          {"measured_batches_per_30s", number(verdict.measured)},
          {"predicted_to_measured", number(verdict.ratio)},
          {"within_25_percent", verdict.known() ? Json(verdict.close()) : Json()},
          {"problem", forecast.problem}};
}

Forecast forecast_in(const Json& json) {
  Forecast forecast{.cell = {.part = "presets",
                             .preset = json.at("preset"),
                             .workload = json.at("workload"),
                             .link = json.at("link")},
                    .rounds = {},
                    .bottleneck = json.at("bottleneck"),
                    .problem = json.at("problem")};
  const Json& batches = json.at("predicted_batches_per_30s_of_rounds");
  const Json& slot_seconds = json.at("slot_seconds_of_rounds");
  for (std::size_t i = 0; i < batches.size(); ++i) {
    forecast.rounds.push_back({number_in(batches.at(i)), number_in(slot_seconds.at(i))});
  }
  return forecast;
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

Result<BenchReport> bench_report_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    BenchReport report{.conditions = conditions_in(json.at("conditions")), .rows = {}, .forecasts = {}};
    for (const auto& [part, key] : kParts) {
      for (const Json& row : json.at(key)) report.rows.push_back(row_in(row, part));
    }
    for (const Json& forecast : json.at("predictions")) report.forecasts.push_back(forecast_in(forecast));
    return report;
  } catch (const Json::exception& error) {
    return corrupt(std::string("not a report of `w5xde bench original`: ") + error.what());
  }
}

}  // namespace w5xde
