#include "seeds_report.h"

#include <gtest/gtest.h>

#include <cmath>

#include "seeds_sentences.h"

namespace w5xde {
namespace {

Row row(const std::string& preset, std::vector<double> rounds) {
  Row row{.cell = {"presets", preset, "seeds", "loopback"}};
  row.rounds_batches = std::move(rounds);
  row.figures.batches = median(row.rounds_batches);
  return row;
}

SeedsReport some_report() {
  SeedsReport report{.conditions = {.date = "2026-01-02 03:04 UTC",
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
  report.rows[1].figures.loss_last = 0.25;
  report.rows.push_back({.cell = {"buffers", "adaptive", "2M", "loopback", 8 << 20, "silent"}});
  report.rows.push_back({.cell = {"logging", "adaptive", "seeds", "loopback", 0, "verbose"}});
  return report;
}

TEST(FiguresTest, a_pool_is_told_as_thirty_seconds_of_it) {
  Summary summary{.seconds = 10, .batches = 400, .throughput_bytes_per_second = 5e6, .memory_bytes = 7};
  summary.loss = {2.3, 0.5, 1};
  summary.per_node = {{.batches = 180, .network_seconds = 4, .compression_seconds = 1, .compute_seconds = 5},
                      {.batches = 220, .network_seconds = 6, .compression_seconds = 0, .compute_seconds = 3}};
  const Figures figures = figures_of(summary);
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

TEST(FiguresTest, a_pool_that_did_nothing_has_none) {
  EXPECT_TRUE(std::isnan(figures_of({}).batches));
  const Summary idle{.seconds = 1, .per_node = {{.name = "a"}, {.name = "b"}}};
  EXPECT_EQ(figures_of(idle).batches, 0);
  EXPECT_TRUE(std::isnan(figures_of(idle).node_spread));
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

TEST(SeedsJsonTest, what_is_written_is_read_back) {
  const std::string json = to_json(some_report());
  const auto read = seeds_report_from_json(json);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_json(*read), json);
  ASSERT_EQ(read->rows.size(), 4u);
  EXPECT_EQ(read->rows[2].cell, some_report().rows[2].cell);
  EXPECT_EQ(read->rows[0].problem, "no room");
  EXPECT_TRUE(std::isnan(read->rows[0].rounds_batches[2]));
  EXPECT_EQ(read->rows[1].figures.loss_last, 0.25);
  EXPECT_FALSE(read->conditions.complete);
}

TEST(SeedsJsonTest, what_is_no_report_is_refused) {
  for (const char* text : {"", "{}", "[]", R"({"conditions": 1})", R"({"conditions": {"date": 5}})"}) {
    EXPECT_FALSE(seeds_report_from_json(text).ok()) << text;
  }
  std::string json = to_json(some_report());
  json.replace(json.find("batches_per_30s"), 7, "BATCHES");
  EXPECT_FALSE(seeds_report_from_json(json).ok());
}

TEST(SeedsTextTest, the_seeds_columns_stand_beside_ours_where_they_measured_the_same) {
  const std::string text = to_text(some_report());
  EXPECT_NE(text.find("2,733"), std::string::npos) << text;
  EXPECT_NE(text.find("326 KB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("no room"), std::string::npos) << text;
  EXPECT_NE(text.find("100mbit: a relay"), std::string::npos) << text;
  EXPECT_EQ(text.find("nan"), std::string::npos) << text;
  SeedsReport large = some_report();
  for (Row& row : large.rows) row.cell.workload = "2M";
  EXPECT_EQ(to_text(large).find("2,733"), std::string::npos);
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
