#include "bench/report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "bench/report_sentences.h"

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
                       .rounds = {{160, 5e-5}, {168, 4e-5}, {187, 3e-5}},
                       .bottleneck = "compute"},
                      {.cell = report.rows[0].cell, .rounds = {{}}, .problem = "no engine"}};
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
    return report.verdict({.cell = of.cell, .rounds = {{batches}}});
  };
  EXPECT_EQ(verdict(report.rows[0], 80).measured, 100);
  EXPECT_DOUBLE_EQ(verdict(report.rows[0], 80).ratio, 0.8);
  EXPECT_TRUE(verdict(report.rows[0], 75).close() && verdict(report.rows[0], 125).close());
  EXPECT_FALSE(verdict(report.rows[0], 74).close() || verdict(report.rows[0], 126).close());
  for (const ForecastVerdict& none :
       {verdict(report.rows[0], kUnknown), verdict(report.rows[1], 80),
        report.verdict({.cell = {"presets", "adaptive", "2M", "loopback"}, .rounds = {{1}}})}) {
    EXPECT_FALSE(none.known() || none.close());
  }
}

TEST(VerdictTest, a_round_s_forecast_is_compared_with_that_round) {
  BenchReport report;
  report.rows = {row("adaptive", {100, 50, kUnknown, 200})};
  // The machine was half as fast in the second round, as plan had noticed; the last was not predicted.
  const Forecast forecast{.cell = report.rows[0].cell, .rounds = {{110}, {55}, {400}, {}}};
  EXPECT_DOUBLE_EQ(report.verdict(forecast).ratio, 1.1);
  EXPECT_EQ(report.verdict(forecast).measured, 100);
}

TEST(BenchReportTest, rounds_of_a_forecast_come_one_by_one) {
  const Cell one{"presets", "adaptive", "original", "loopback"},
      other{"presets", "early", "original", "loopback"};
  BenchReport report;
  report.add({.cell = one, .rounds = {{100, 1e-5}}, .bottleneck = "compute"});
  report.add({.cell = other, .rounds = {{7, 1e-5}}});
  report.add({.cell = one, .rounds = {{}}, .problem = "no engine"});
  report.add({.cell = one, .rounds = {{300, 3e-5}}, .bottleneck = "coordinator"});
  ASSERT_EQ(report.forecasts.size(), 2u);
  const Forecast& forecast = report.forecasts[0];
  EXPECT_EQ(forecast.rounds.size(), 3u);
  EXPECT_EQ(forecast.batches(), 200);
  EXPECT_DOUBLE_EQ(forecast.slot_seconds(), 2e-5);
  EXPECT_EQ(forecast.bottleneck, "coordinator");
  EXPECT_EQ(forecast.problem, "no engine") << "of any round";
}

TEST(ReportJsonTest, what_is_written_is_read_back) {
  const std::string json = to_json(some_report());
  const auto read = bench_report_from_json(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_json(*read), json);
  ASSERT_EQ(read->rows.size(), 4u);
  EXPECT_EQ(read->rows[2].cell, some_report().rows[2].cell);
  EXPECT_EQ(read->rows[0].problem, "no room");
  EXPECT_EQ(read->rows[1].warm_up_seconds, 1.5);
  EXPECT_EQ(read->rows[1].cold_rounds, 2u);
  EXPECT_TRUE(std::isnan(read->rows[0].rounds_batches[2]));
  EXPECT_EQ(read->rows[1].figures.loss_last, 0.25);
  EXPECT_FALSE(read->conditions.complete);
  ASSERT_EQ(read->forecasts.size(), 2u);
  EXPECT_EQ(read->forecasts[0].cell, some_report().rows[1].cell);
  EXPECT_EQ(read->forecasts[0].batches(), 168);
  EXPECT_EQ(read->forecasts[0].rounds.size(), 3u);
  EXPECT_EQ(read->forecasts[0].rounds[2].slot_seconds, 3e-5);
  EXPECT_EQ(read->forecasts[1].problem, "no engine");
}

TEST(ReportJsonTest, what_is_no_report_is_refused) {
  for (const char* text : {"", "{}", "[]", R"({"conditions": 1})", R"({"conditions": {"date": 5}})"}) {
    EXPECT_FALSE(bench_report_from_json(text).ok()) << text;
  }
  std::string json = to_json(some_report());
  json.replace(json.find("batches_per_30s"), 7, "BATCHES");
  EXPECT_FALSE(bench_report_from_json(json).ok());
}

TEST(ReportTextTest, the_original_s_columns_stand_beside_ours_where_it_measured_the_same) {
  const std::string text = to_text(some_report());
  EXPECT_NE(text.find("2,733"), std::string::npos) << text;
  EXPECT_NE(text.find("326 KB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("no room"), std::string::npos) << text;
  EXPECT_NE(text.find("100mbit: a relay"), std::string::npos) << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
  BenchReport large = some_report();
  for (Row& row : large.rows) row.cell.workload = "2M";
  EXPECT_EQ(to_text(large).find("2,733"), std::string::npos);
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
  const auto at =
      text.find("adaptive, original, loopback           168           210   0.80     yes    compute");
  EXPECT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find("no prediction for early, original, loopback: no engine"), std::string::npos) << text;
  EXPECT_NE(text.find("1 of 1 predictions are within 25 %"), std::string::npos) << text;
  BenchReport without = some_report();
  without.forecasts.clear();
  EXPECT_EQ(to_text(without).find("predicted"), std::string::npos);
}

TEST(SentencesTest, the_farthest_prediction_is_named) {
  BenchReport report;
  report.rows = {row("early", {100}), row("adaptive", {100})};
  EXPECT_EQ(forecast_sentence(report), "");
  report.forecasts = {{.cell = report.rows[0].cell, .rounds = {{60}}},
                      {.cell = report.rows[1].cell, .rounds = {{110}}}};
  EXPECT_EQ(forecast_sentence(report),
            "1 of 2 predictions are within 25 % of what was measured; the farthest, early, original, "
            "loopback, said "
            "0.60 times as much.");
}

TEST(SentencesTest, differences_within_the_noise_are_called_level) {
  const std::vector<Row> rows = {row("early", {10, 10, 10}), row("current", {95, 96, 97}),
                                 row("adaptive", {95, 100, 105})};
  const std::string text = comparison_sentences(rows);
  EXPECT_NE(text.find("Most batches: adaptive, 100 in 30 s. Fewest: early, 10 (0.10 of it)."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("up to 10 % apart: by that measure current is level with the best."), std::string::npos)
      << text;
}

TEST(SentencesTest, one_round_claims_nothing_and_no_figures_say_nothing) {
  const std::vector<Row> once = {row("early", {10}), row("adaptive", {100})};
  EXPECT_NE(comparison_sentences(once).find("one round"), std::string::npos);
  const std::vector<Row> none = {row("early", {}), row("adaptive", {})};
  EXPECT_EQ(comparison_sentences(none), "");
  EXPECT_EQ(time_sentence(none) + spread_sentence(none) + loss_sentence(none), "");
  EXPECT_EQ(buffers_sentence(none, {}) + logging_sentence(none), "");
}

TEST(SentencesTest, a_loss_that_rose_is_named) {
  std::vector<Row> rows = {row("early", {1}), row("adaptive", {1})};
  for (Row& each : rows) each.figures.loss_first = 2, each.figures.loss_last = 1;
  EXPECT_EQ(loss_sentence(rows), "The loss fell with every preset.");
  rows[0].figures.loss_last = 3;
  EXPECT_EQ(loss_sentence(rows), "The loss did not fall with early.");
}

TEST(SentencesTest, verbose_is_compared_with_silent) {
  std::vector<Row> rows = {row("adaptive", {100, 100}), row("adaptive", {70, 72})};
  rows[0].cell.log = "silent";
  rows[1].cell.log = "verbose";
  EXPECT_NE(logging_sentence(rows).find("cost 29 % of the batches"), std::string::npos)
      << logging_sentence(rows);
  std::swap(rows[0].cell.log, rows[1].cell.log);
  EXPECT_NE(logging_sentence(rows).find("cost no batches"), std::string::npos) << logging_sentence(rows);
}

}  // namespace
}  // namespace w5xde
