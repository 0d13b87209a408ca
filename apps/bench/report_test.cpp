#include "bench/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "bench/report_sections.h"

namespace w5xde {
namespace {

Row row(const std::string& preset, std::vector<double> rounds) {
  Row row{.cell = {"presets", preset, "original", "loopback"}};
  row.rounds_batches = std::move(rounds);
  row.figures.batches = median(row.rounds_batches);
  return row;
}

BenchReport some_report() {
  BenchReport report{.conditions = {.date = "2026-01-02 03:04 UTC",
                                    .version = "0.1.0",
                                    .processor = "a \"processor\"",
                                    .kernel = "Linux 6",
                                    .cores = 2,
                                    .receive_buffer_bytes_max = 212992,
                                    .send_buffer_bytes_max = 4194304,
                                    .nodes = 10,
                                    .rounds = 3,
                                    .seconds = 30,
                                    .link = "a relay",
                                    .complete = false}};
  report.rows = {row("early", {100, 110, kUnknown}), row("adaptive", {200, 210, 220})};
  report.rows[0].problem = "no room";
  report.rows[1].warm_up_seconds = 1.5;
  report.rows[1].cold_rounds = 2;
  report.rows[1].figures.loss_last = 0.25;
  report.rows.push_back({.cell = {"buffers", "adaptive", "2M", "loopback", 8 << 20, "silent"}});
  report.rows.push_back({.cell = {"logging", "adaptive", "original", "loopback", 0, "verbose"}});
  report.forecasts = {{.cell = report.rows[1].cell,
                       .batches = {160, 168, 187},
                       .slot_seconds = {5e-5, 4e-5, 3e-5},
                       .bottleneck = "compute"},
                      {.cell = report.rows[0].cell,
                       .batches = {kUnknown},
                       .slot_seconds = {kUnknown},
                       .problem = "no engine"}};
  return report;
}

TEST(FiguresTest, a_pool_is_told_as_thirty_seconds_of_it) {
  Summary summary{.seconds = 10, .batches = 400, .throughput_bytes_per_second = 5e6, .memory_bytes = 7};
  summary.loss = {2.3, 0.5, 1};
  summary.per_node = {{.batches = 180, .network_seconds = 4, .compression_seconds = 1, .compute_seconds = 5},
                      {.batches = 220, .network_seconds = 6, .compression_seconds = 0, .compute_seconds = 3}};
  const Figures figures = figures_of(summary, std::nullopt);
  EXPECT_DOUBLE_EQ(figures.batches, 1200);
  EXPECT_DOUBLE_EQ(figures.bytes_per_second, 5e6);
  EXPECT_DOUBLE_EQ(figures.network_seconds, 15);
  EXPECT_DOUBLE_EQ(figures.compression_seconds, 1.5);
  EXPECT_DOUBLE_EQ(figures.compute_seconds, 12);
  EXPECT_DOUBLE_EQ(figures.node_batches_min, 540);
  EXPECT_DOUBLE_EQ(figures.node_batches_max, 660);
  EXPECT_NEAR(figures.node_spread, 220.0 / 180 - 1, 1e-12);
  EXPECT_DOUBLE_EQ(figures.loss_last, 0.5);
}

TEST(FiguresTest, batches_are_those_of_a_warm_pool_and_all_else_is_of_the_whole_run) {
  Summary summary{.seconds = 10, .steps = 100, .batches = 400};
  summary.per_node = {{.batches = 400, .network_seconds = 4}};
  const Figures figures = figures_of(summary, RunDatabase::Stretch{.steps = 90, .seconds = 6});
  EXPECT_DOUBLE_EQ(figures.batches, 4 * 90 / 6.0 * 30);
  EXPECT_DOUBLE_EQ(figures.node_batches_max, 1200);
  EXPECT_DOUBLE_EQ(figures.network_seconds, 12);
}

TEST(FiguresTest, a_pool_that_did_nothing_has_none) {
  EXPECT_TRUE(std::isnan(figures_of({}, {}).batches));
  const Summary idle{.seconds = 1, .per_node = {{.name = "a"}, {.name = "b"}}};
  EXPECT_EQ(figures_of(idle, {}).batches, 0);
  EXPECT_TRUE(std::isnan(figures_of(idle, {}).node_spread));
}

TEST(FiguresTest, the_median_is_of_what_is_known) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, kUnknown}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
  const Figures medians =
      median_of(std::vector<Figures>{{.batches = 1}, {.batches = 9, .loss_last = 3}, {.batches = 5}});
  EXPECT_EQ(medians.batches, 5);
  EXPECT_EQ(medians.loss_last, 3);
  EXPECT_TRUE(std::isnan(medians.memory_bytes));
}

TEST(RowTest, ratios_are_paired_round_by_round) {
  // The machine was half as fast in the second round, for both.
  EXPECT_DOUBLE_EQ(ratio(row("a", {50, 25}), row("b", {100, 50})), 0.5);
  EXPECT_DOUBLE_EQ(ratio(row("a", {50, kUnknown}), row("b", {100, 50})), 0.5);
  EXPECT_TRUE(std::isnan(ratio(row("a", {}), row("b", {100}))));
  EXPECT_TRUE(std::isnan(ratio(row("a", {1}), row("b", {0}))));
}

TEST(RowTest, the_best_is_the_one_with_most_and_rounds_lie_apart) {
  const std::vector<Row> rows = {row("a", {1}), row("none", {}), row("b", {3})};
  EXPECT_EQ(best_of(rows)->cell.preset, "b");
  EXPECT_EQ(best_of(std::vector<Row>{}), nullptr);
  EXPECT_DOUBLE_EQ(round_spread(row("a", {90, 100, 110})), 0.2);
  EXPECT_TRUE(std::isnan(round_spread(row("a", {90}))));
  EXPECT_TRUE(std::isnan(round_spread(row("a", {0, 0}))));
}

TEST(VerdictTest, a_forecast_is_close_within_a_quarter_of_what_was_measured) {
  BenchReport report;
  report.rows = {row("adaptive", {100}), row("early", {})};
  const auto verdict = [&](const Row& of, double batches) {
    return report.verdict({.cell = of.cell, .batches = {batches}});
  };
  EXPECT_EQ(verdict(report.rows[0], 80).measured, 100);
  EXPECT_DOUBLE_EQ(verdict(report.rows[0], 80).ratio, 0.8);
  EXPECT_TRUE(verdict(report.rows[0], 75).close() && verdict(report.rows[0], 125).close());
  EXPECT_FALSE(verdict(report.rows[0], 74).close() || verdict(report.rows[0], 126).close());
  for (const ForecastVerdict& none :
       {verdict(report.rows[0], kUnknown), verdict(report.rows[1], 80),
        report.verdict({.cell = {"presets", "adaptive", "2M", "loopback"}, .batches = {1}})}) {
    EXPECT_FALSE(none.known() || none.close());
  }
}

TEST(VerdictTest, a_round_s_forecast_is_compared_with_that_round) {
  BenchReport report;
  report.rows = {row("adaptive", {100, 50, kUnknown, 200})};
  // The machine was half as fast in the second round, as plan had noticed; the last was not predicted.
  const Forecast forecast{.cell = report.rows[0].cell, .batches = {110, 55, 400, kUnknown}};
  EXPECT_DOUBLE_EQ(report.verdict(forecast).ratio, 1.1);
  EXPECT_EQ(report.verdict(forecast).measured, 100);
}

TEST(ReportJsonTest, it_has_every_figure_and_null_for_what_is_unknown) {
  const auto json = nlohmann::json::parse(to_json(some_report()));
  EXPECT_EQ(json.at("rows").size(), 2u);
  const auto& early = json.at("rows")[0];
  EXPECT_EQ(early.at("preset"), "early");
  EXPECT_EQ(early.at("problem"), "no room");
  EXPECT_EQ(early.at("batches_per_30s"), 105);
  EXPECT_EQ(early.at("batches_per_30s_of_rounds"), nlohmann::json({100, 110, nullptr}));
  const auto& adaptive = json.at("rows")[1];
  EXPECT_EQ(adaptive.at("warm_up_seconds"), 1.5);
  EXPECT_EQ(adaptive.at("rounds_without_warm_up"), 2);
  EXPECT_EQ(adaptive.at("loss_last"), 0.25);
  EXPECT_TRUE(adaptive.at("memory_bytes").is_null());
  EXPECT_EQ(json.at("buffer_study")[0].at("socket_buffer_bytes"), 8 << 20);
  EXPECT_EQ(json.at("logging_study")[0].at("log"), "verbose");
  EXPECT_EQ(json.at("conditions").at("processor"), "a \"processor\"");
  EXPECT_EQ(json.at("conditions").at("complete"), false);
  EXPECT_EQ(json.at("original_published")[0].at("batches_per_30s"), 2733);
}

TEST(ReportJsonTest, predictions_have_their_medians_their_rounds_and_a_verdict) {
  const auto json = nlohmann::json::parse(to_json(some_report())).at("predictions");
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0].at("preset"), "adaptive");
  EXPECT_EQ(json[0].at("predicted_batches_per_30s"), 168);
  EXPECT_EQ(json[0].at("predicted_batches_per_30s_of_rounds"), nlohmann::json({160, 168, 187}));
  EXPECT_EQ(json[0].at("slot_seconds"), 4e-5);
  EXPECT_EQ(json[0].at("slot_seconds_of_rounds"), nlohmann::json({5e-5, 4e-5, 3e-5}));
  EXPECT_EQ(json[0].at("measured_batches_per_30s"), 210);
  EXPECT_EQ(json[0].at("within_25_percent"), true);
  EXPECT_EQ(json[1].at("problem"), "no engine");
  EXPECT_TRUE(json[1].at("within_25_percent").is_null());
}

TEST(ReportTextTest, it_has_what_was_measured_what_was_published_and_what_went_wrong) {
  const std::string text = to_text(some_report());
  EXPECT_NE(text.find("2,733"), std::string::npos) << text;
  EXPECT_NE(text.find("326 KB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("no room"), std::string::npos) << text;
  EXPECT_NE(text.find("100 Mbit/s: a relay"), std::string::npos) << text;
  EXPECT_NE(text.find("Stopped before the last round"), std::string::npos) << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
}

TEST(ReportTextTest, it_says_how_long_pools_warmed_up_and_where_that_was_not_enough) {
  BenchReport report = some_report();
  for (Row& row : report.rows) row.warm_up_seconds = 1;
  report.rows[0].cell.link = "100mbit";
  report.rows[0].warm_up_seconds = 12;
  const std::string text = to_text(report);
  EXPECT_NE(text.find("12 s (original 100mbit), 1 s (original loopback, 2M loopback)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("adaptive, original, loopback: in 2 of 3 rounds too few steps"), std::string::npos)
      << text;
}

TEST(ReportTextTest, predictions_stand_beside_what_was_measured) {
  const std::string text = to_text(some_report());
  const auto at = text.find("  adaptive, original, loopback ");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_TRUE(text.substr(at, text.find('\n', at) - at)
                  .ends_with(" 168                    210   0.80          yes     compute"))
      << text;
  EXPECT_NE(text.find("No prediction for early, original, loopback: no engine"), std::string::npos) << text;
  EXPECT_NE(text.find("1 of 1 predictions are within 25 %"), std::string::npos) << text;
  BenchReport without = some_report();
  without.forecasts.clear();
  EXPECT_EQ(to_text(without).find("redicted"), std::string::npos);
}

TEST(SentencesTest, the_farthest_prediction_is_named) {
  BenchReport report;
  report.rows = {row("early", {100}), row("adaptive", {100})};
  EXPECT_EQ(forecast_text(report), "");
  report.forecasts = {{.cell = report.rows[0].cell, .batches = {60}},
                      {.cell = report.rows[1].cell, .batches = {110}}};
  EXPECT_EQ(forecast_text(report),
            "1 of 2 predictions are within 25 % of what was measured; the farthest off is early, original, "
            "loopback, 0.60 times what was measured.");
}

TEST(SentencesTest, differences_within_the_noise_are_named) {
  const std::vector<Row> rows = {row("early", {10, 10, 10}), row("current", {95, 96, 97}),
                                 row("adaptive", {95, 100, 105})};
  EXPECT_EQ(comparison_text(rows),
            "Most batches in 30 s: adaptive, 100. Fewest: early, 10 (0.10 times as many). Rounds of one row "
            "differ by up to 10 %, so current may be as fast as the best.");
}

TEST(SentencesTest, one_round_claims_nothing_and_no_figures_say_nothing) {
  EXPECT_NE(comparison_text({row("early", {10}), row("adaptive", {100})}).find("one round"),
            std::string::npos);
  EXPECT_EQ(comparison_text({row("early", {}), row("adaptive", {})}), "");
}

TEST(SentencesTest, log_tiers_are_compared_with_silent) {
  BenchReport report;
  report.rows = {row("adaptive", {100, 100}), row("adaptive", {120, 120})};
  for (Row& each : report.rows) each.cell.part = "logging";
  report.rows[1].cell.log = "verbose";
  const Section section = sections_of(report).front();
  EXPECT_EQ(section.table[0][3], "of silent");
  EXPECT_EQ(section.table[1][3], "1.00");
  EXPECT_EQ(section.table[2][3], "1.20");
}

}  // namespace
}  // namespace w5xde
