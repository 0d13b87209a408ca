// w5xde bench original, small: the report it leaves, and what is left of it when it is stopped.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <set>

#include "pool.h"

namespace w5xde {
namespace {

constexpr int kInterrupted = 4;

class OriginalBenchTest : public testing::Test {
 protected:
  Process bench(const Words& more, const Process::Options& options = {}) const {
    Words words = {"bench", "original", "--nodes", "2", "--out", "report"};
    words.insert(words.end(), more.begin(), more.end());
    return pool_.start(words, options);
  }
  nlohmann::json report() const {
    std::ifstream file(pool_.folder() / "report/report.json");
    return nlohmann::json::parse(file);
  }
  std::string page() const {
    std::ifstream file(pool_.folder() / "report/report.html");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const Pool pool_{{.name = "numbers"}};
};

TEST_F(OriginalBenchTest, every_preset_has_a_row_with_every_column) {
  Process process = bench({"--seconds", "0.6", "--rounds", "1", "--only", "presets,original,loopback"});
  ASSERT_EQ(process.wait(), 0) << process.said();
  const auto told = report();
  std::set<std::string> presets;
  for (const auto& row : told.at("rows")) {
    presets.insert(row.at("preset"));
    EXPECT_EQ(row.at("workload"), "original");
    EXPECT_EQ(row.at("link"), "loopback");
    EXPECT_GT(row.at("batches_per_30s"), 0) << row;
    EXPECT_EQ(row.at("warm_up_seconds"), 1);
    EXPECT_EQ(row.at("rounds_without_warm_up"), 0) << row;
    for (const char* column :
         {"throughput_bytes_per_second", "network_seconds_per_30s", "compression_seconds_per_30s",
          "compute_seconds_per_30s", "compression_ratio", "memory_bytes", "node_batches_min",
          "node_batches_max", "node_spread", "loss_first", "loss_last"}) {
      EXPECT_TRUE(row.at(column).is_number()) << column << row;
    }
  }
  EXPECT_EQ(presets,
            (std::set<std::string>{"early", "standard", "current", "enhanced", "lz4-block", "direct-tensor",
                                   "gradient-compression", "adaptive", "adaptive-lossy"}));
  std::set<std::string> predicted;
  for (const auto& prediction : told.at("predictions")) {
    predicted.insert(prediction.at("preset"));
    EXPECT_GT(prediction.at("slot_seconds"), 0) << prediction;
    EXPECT_GT(prediction.at("predicted_batches_per_30s"), 0) << prediction;
    EXPECT_GT(prediction.at("measured_batches_per_30s"), 0) << prediction;
    EXPECT_TRUE(prediction.at("within_25_percent").is_boolean()) << prediction;
  }
  EXPECT_EQ(predicted, (std::set<std::string>{"direct-tensor", "gradient-compression", "adaptive"}));
  EXPECT_TRUE(told.at("conditions").at("complete"));
  EXPECT_TRUE(page().ends_with("</html>\n"));
}

TEST_F(OriginalBenchTest, a_slow_link_carries_a_pool) {
  Process process =
      bench({"--seconds", "0.6", "--rounds", "1", "--only", "presets,adaptive,original,100mbit"});
  ASSERT_EQ(process.wait(), 0) << process.said();
  EXPECT_GT(report().at("rows").at(0).at("batches_per_30s"), 0);
  EXPECT_NE(report().at("conditions").at("link"), "");
}

TEST_F(OriginalBenchTest, without_namespaces_a_relay_is_the_link) {
  const Words words = {"--seconds", "0.6", "--rounds", "1", "--only", "presets,adaptive,original,100mbit"};
  Process process = bench(words, {.environment = {{"PATH", pool_.folder().string()}}});
  ASSERT_EQ(process.wait(), 0) << process.said();
  EXPECT_GT(report().at("rows").at(0).at("batches_per_30s"), 0);
  const std::string link = report().at("conditions").at("link");
  EXPECT_TRUE(link.starts_with("a relay")) << link;
}

TEST_F(OriginalBenchTest, a_bench_that_is_stopped_takes_its_link_with_it) {
  Process process = bench({"--seconds", "60", "--rounds", "1", "--only", "presets,adaptive,100mbit"});
  process.wait_for_line("[1/2]");
  process.signal_alone(SIGINT);
  EXPECT_EQ(process.wait(), kInterrupted) << process.said();
  const std::string namespaces = "/run/netns/w5xde-" + std::to_string(process.id());
  for (const char* end : {"-coordinator", "-nodes"}) EXPECT_FALSE(std::filesystem::exists(namespaces + end));
}

TEST_F(OriginalBenchTest, a_bench_that_is_stopped_tells_what_it_has) {
  Process process = bench({"--seconds", "60", "--rounds", "2", "--only", "logging"});
  process.wait_for_line("[1/6]");
  process.signal_alone(SIGTERM);
  EXPECT_EQ(process.wait(), kInterrupted) << process.said();
  EXPECT_FALSE(report().at("conditions").at("complete"));
  EXPECT_EQ(report().at("logging_study").size(), 3u);
  EXPECT_TRUE(process.descendants().empty());
}

TEST_F(OriginalBenchTest, a_bench_that_is_stopped_while_it_plans_has_no_predictions) {
  Process process = bench({"--only", "presets,adaptive,2M,loopback"});
  process.wait_for_line("w5xde plan, adaptive, 2M, loopback");
  process.signal_alone(SIGINT);
  EXPECT_EQ(process.wait(), kInterrupted) << process.said();
  EXPECT_FALSE(report().at("conditions").at("complete"));
  EXPECT_TRUE(report().at("predictions").empty());
}

TEST_F(OriginalBenchTest, nonsense_is_refused_before_anything_runs) {
  Process unknown = bench({"--only", "fastest"});
  EXPECT_EQ(unknown.wait(), 2);
  EXPECT_NE(unknown.said().find("'fastest'"), std::string::npos) << unknown.said();
  EXPECT_EQ(bench({"--rounds", "0"}).wait(), 2);
}

}  // namespace
}  // namespace w5xde
