#include "record/summary.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

namespace w5xde {
namespace {

using Json = nlohmann::ordered_json;

NodeSummary some_node(const std::string& name) {
  return {.name = name,
          .batches = 1'250,
          .loss = {.first = 2.3026, .last = 0.0871, .mean = 0.31},
          .bytes_sent = 123'456'789,
          .bytes_received = 987'654,
          .throughput_bytes_per_second = 10'250'000,
          .compression_ratio = 3.456,
          .network_seconds = 1.5,
          .compression_seconds = 0.25,
          .compute_seconds = 10.125,
          .lanes = 2,
          .standing = "standby",
          .reason = "node-1 computes with all cores of this machine",
          .codec_up = "topk:0.01, uncompressed",
          .codec_down = "exact floats, zstd:1"};
}

Summary some_summary() {
  return {.mode = "sync",
          .preset = "adaptive",
          .outcome = "finished",
          .nodes = 2,
          .seconds = 12.345,
          .steps = 938,
          .batches = 3'750,
          .batches_per_second = 303.77,
          .samples = 60'000,
          .epochs = 1,
          .loss = {.first = 2.3026, .last = 0.0871, .mean = 0.31},
          .evaluation = EvaluationStats{.loss = 0.0912, .accuracy = 0.9721},
          .best = BestStats{.step = 470, .loss = 0.0907},
          .bytes = {.sent = 1'234'567'890, .received = 45'600},
          .throughput_bytes_per_second = 96'500'000,
          .compression_ratio = 3.21,
          .memory_bytes = 412'000'000,
          .loop_longest_seconds = 0.004,
          .parameters_hash = "9f86d081884c7d659a2feaa0c55ad015",
          .audit = {.samples_expected = 60'000,
                    .samples_committed = 60'000,
                    .slots_leased_again = 3,
                    .duplicates_dropped = 1},
          .per_node = {some_node("desk"), some_node("attic")}};
}

std::vector<std::string> keys_of(const Json& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(
      std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

using Keys = std::vector<std::string>;

TEST(SummaryJson, has_exactly_the_keys_that_its_readers_know) {
  const Json json = Json::parse(to_json(some_summary()));
  EXPECT_EQ(keys_of(json), (Keys{"mode",
                                 "preset",
                                 "outcome",
                                 "nodes",
                                 "seconds",
                                 "resumed",
                                 "steps",
                                 "batches",
                                 "batches_per_second",
                                 "samples",
                                 "epochs",
                                 "batch",
                                 "global_batch",
                                 "working",
                                 "batch_trials",
                                 "batch_growth",
                                 "loss",
                                 "evaluation",
                                 "best",
                                 "bytes",
                                 "throughput_bytes_per_second",
                                 "compression_ratio",
                                 "memory_bytes",
                                 "loop_longest_seconds",
                                 "parameters_hash",
                                 "audit",
                                 "per_node"}));
  EXPECT_EQ(keys_of(json["loss"]), (Keys{"first", "last", "mean"}));
  EXPECT_EQ(keys_of(json["evaluation"]), (Keys{"loss", "accuracy", "perplexity"}));
  EXPECT_EQ(keys_of(json["best"]), (Keys{"step", "loss"}));
  EXPECT_TRUE(json["resumed"].is_null());
  EXPECT_EQ(keys_of(json["bytes"]), (Keys{"sent", "received"}));
  EXPECT_EQ(keys_of(json["audit"]),
            (Keys{"samples_expected", "samples_committed", "slots_missing", "slots_twice",
                  "slots_leased_again", "duplicates_dropped", "feedback_lost"}));
  ASSERT_EQ(json["per_node"].size(), 2u);
  EXPECT_EQ(keys_of(json["per_node"][0]),
            (Keys{"name", "batches", "loss", "bytes_sent", "bytes_received", "throughput_bytes_per_second",
                  "compression_ratio", "network_seconds", "compression_seconds", "compute_seconds", "lanes",
                  "loop_longest_seconds", "codec_up", "codec_down", "standing", "reason"}));
  EXPECT_EQ(keys_of(json["per_node"][0]["loss"]), (Keys{"first", "last", "mean"}));
}

TEST(SummaryJson, is_read_back_and_written_again_the_same) {
  const std::string text = to_json(some_summary());
  const auto summary = summary_from_json(text);
  ASSERT_TRUE(summary.ok()) << summary.error().to_string();
  EXPECT_EQ(to_json(*summary), text);
  EXPECT_EQ(to_text(*summary), to_text(some_summary()));
}

TEST(SummaryJson, has_null_for_what_is_not_known_or_is_no_number) {
  Summary summary = some_summary();
  summary.evaluation.reset();
  summary.loss.last = std::nan("");
  summary.compression_ratio = std::numeric_limits<double>::infinity();
  summary.per_node[0].loss = {};
  const std::string text = to_json(summary);
  const Json json = Json::parse(text);
  EXPECT_TRUE(json["evaluation"].is_null());
  EXPECT_TRUE(json["loss"]["last"].is_null());
  EXPECT_TRUE(json["compression_ratio"].is_null());
  EXPECT_TRUE(json["per_node"][0]["loss"]["mean"].is_null());
  const auto read = summary_from_json(text);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_FALSE(read->evaluation.has_value());
  EXPECT_TRUE(std::isnan(read->loss.last));
  EXPECT_EQ(to_json(*read), text);
}

TEST(SummaryJson, of_a_run_without_nodes_is_read_back) {
  const std::string text = to_json(Summary{});
  const auto read = summary_from_json(text);
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(to_json(*read), text);
  EXPECT_TRUE(Json::parse(text)["per_node"].is_array());
}

TEST(SummaryJson, that_is_none_is_refused_with_what_is_wrong) {
  const auto refusal = [](const std::string& text) {
    const auto summary = summary_from_json(text);
    return summary.ok() ? "accepted" : summary.error().to_string();
  };
  EXPECT_EQ(refusal("{"), "corrupt: the summary is not JSON");
  EXPECT_EQ(refusal("[]"), "corrupt: the summary is not a JSON object");
  EXPECT_EQ(refusal("{}"), "corrupt: the summary has no per_node");
  const auto changed = [&](const std::function<void(Json&)>& change) {
    Json json = Json::parse(to_json(some_summary()));
    change(json);
    return refusal(json.dump());
  };
  EXPECT_EQ(changed([](Json& json) { json["steps"] = "many"; }),
            "corrupt: the summary's steps is missing or of another kind");
  EXPECT_EQ(changed([](Json& json) { json["loss"].erase("mean"); }),
            "corrupt: the summary's loss.mean is missing or of another kind");
  EXPECT_EQ(changed([](Json& json) { json["audit"] = 7; }),
            "corrupt: the summary's audit is missing or of another kind");
  EXPECT_EQ(changed([](Json& json) { json["per_node"][1]["name"] = nullptr; }),
            "corrupt: the summary's per_node[1].name is missing or of another kind");
  EXPECT_EQ(changed([](Json& json) { json["per_node"][0] = 5; }),
            "corrupt: the summary's per_node[0] is missing or of another kind");
  EXPECT_EQ(changed([](Json& json) { json["of a later version"] = 1; }), "accepted");
}

TEST(SummaryText, of_a_language_model_says_its_perplexity) {
  Summary summary = some_summary();
  summary.evaluation->perplexity = 1234.56;
  EXPECT_NE(to_text(summary).find("0.0912 loss, 97.21 % accuracy, 1235 perplexity\n"), std::string::npos);
  EXPECT_EQ(to_text(*summary.evaluation), "loss 0.0912, accuracy 0.9721, perplexity 1235");
  EXPECT_EQ(to_text(EvaluationStats{.loss = 0.5}), "loss 0.5000");
}

TEST(SummaryText, looks_like_this) {
  EXPECT_EQ(to_text(some_summary()), R"(sync training with 2 nodes took 12.35 s
  steps         938  (60,000 samples, 1.00 epochs)
  batches       3,750  (303.8 a second)
  loss          2.3026 first, 0.0871 last, 0.3100 mean
  evaluation    0.0912 loss, 97.21 % accuracy
  best          step 470: 0.0907 evaluation loss, the lowest
  network       1.2 GB sent, 45.6 KB received, 96.5 MB/s
  compression   3.21x
  preset        adaptive
  gradients     topk:0.01, uncompressed
  parameters    exact floats, zstd:1
  cores         desk computed up to 2 slots at once
  standby       2 nodes: node-1 computes with all cores of this machine
  memory        412.0 MB
  hash of parameters  9f86d081884c7d659a2feaa0c55ad015

                    loss                                     seconds
  node   batches   first    last    mean  throughput  ratio  waiting  compress  compute
  desk     1,250  2.3026  0.0871  0.3100   10.2 MB/s  3.46x     1.50      0.25    10.12
  attic    1,250  2.3026  0.0871  0.3100   10.2 MB/s  3.46x     1.50      0.25    10.12
  waiting: for the network, the coordinator or other nodes

audit: 60,000 of 60,000 samples committed exactly once; 3 slots leased again, 1 duplicate dropped
)");
}

TEST(SummaryText, says_what_was_measured_of_batches_and_how_they_grew) {
  Summary summary = some_summary();
  summary.batch = 64;
  summary.global_batch = 4'096;
  summary.working = 1;
  summary.batch_trials = {{8, 9'000}, {16, 15'500.4}, {32, 21'000}, {64, 24'800}, {128, 25'000}};
  summary.batch_growth = GrowthStats{
      .noise_scale = 5'209.6,
      .growths = {{120, 1'024, 2'048, 5'210.2, 0.1, 0.2}, {170, 2'048, 4'096, kUnknown, 0.2, 0.4}}};
  const std::string text = to_text(summary);
  EXPECT_NE(text.find("  working       1 of 2 nodes at a time: more at once would make a step longer\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  batch         64 samples, of 8: 9,000, 16: 15,500, 32: 21,000, 64: 24,800, "
                      "128: 25,000 samples/s\n"
                      "  global batch  4,096 samples, noise scale 5,210\n"
                      "                step 120: 1,024 → 2,048 samples, noise scale 5,210, learning rate 0.1 "
                      "→ 0.2\n"
                      "                step 170: 2,048 → 4,096 samples, noise scale beyond measure, "
                      "learning rate 0.2 → 0.4\n"),
            std::string::npos)
      << text;
  for (const std::string& line : lines_of(text)) EXPECT_LE(columns_of(line), 100u) << line;
  const auto read = summary_from_json(to_json(summary));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(to_text(*read), text);
  EXPECT_EQ(to_json(*read), to_json(summary));
}

TEST(SummaryText, says_what_is_of_the_whole_run_and_what_came_since_it_was_resumed) {
  Summary summary = some_summary();
  summary.resumed = ResumeStats{.step = 1470, .seconds = 3.1};
  const std::string text = to_text(summary);
  const auto has = [&](const char* part) { EXPECT_NE(text.find(part), std::string::npos) << text; };
  has("sync training with 2 nodes took 12.35 s, 3.10 s of it since the resume at step 1,470\n");
  has("  batches       3,750  (303.8 a second since the resume)\n");
  has("  network       1.2 GB sent, 45.6 KB received, 96.5 MB/s since the resume\n");
  has("\n\n  since the resume:\n                    loss");
  for (const std::string& line : lines_of(text)) EXPECT_LE(columns_of(line), 100u) << line;
  const auto read = summary_from_json(to_json(summary));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  EXPECT_EQ(to_text(*read), text);
}

TEST(SummaryText, of_a_run_that_was_stopped_or_failed_says_so) {
  Summary summary = some_summary();
  const auto title = [&](const char* outcome) {
    summary.outcome = outcome;
    return lines_of(to_text(summary)).front();
  };
  EXPECT_EQ(title(kFinished), "sync training with 2 nodes took 12.35 s");
  EXPECT_EQ(title(kStopped), "sync training with 2 nodes took 12.35 s; stopped");
  EXPECT_EQ(title("training diverged at step 3: …"), "sync training with 2 nodes took 12.35 s; failed");
}

TEST(SummaryText, says_nothing_of_nodes_that_work_where_all_do) {
  Summary summary = some_summary();
  summary.working = 2;
  EXPECT_EQ(to_text(summary).find("working"), std::string::npos) << to_text(summary);
}

TEST(SummaryText, of_one_node_and_of_fifty_fits_a_terminal) {
  Summary summary = some_summary();
  summary.per_node.clear();
  for (int i = 0; i < 50; ++i) {
    NodeSummary node = some_node(fmt::format("a-node-with-a-rather-long-näme-{}", i));
    node.batches = 12'345'678;
    node.compute_seconds = 98'765.4;
    node.throughput_bytes_per_second = 999e6;
    summary.per_node.push_back(node);
  }
  for (const std::size_t nodes : {std::size_t{50}, std::size_t{12}, std::size_t{1}}) {
    summary.nodes = nodes;
    summary.per_node.resize(nodes);
    const std::string text = to_text(summary);
    for (const std::string& line : lines_of(text)) EXPECT_LE(columns_of(line), 100u) << line;
    const auto shown = std::ranges::count_if(
        lines_of(text), [](const auto& line) { return line.starts_with("  a-node-with-a-…"); });
    EXPECT_EQ(shown, nodes == 50 ? 10 : static_cast<std::ptrdiff_t>(nodes));
    EXPECT_EQ(text.find("  … and 40 more (all in --json)\n") != std::string::npos, nodes == 50);
  }
}

TEST(SummaryText, says_how_many_nodes_have_another_codec) {
  Summary summary = some_summary();
  summary.per_node[1].codec_up = "int8, uncompressed";
  EXPECT_NE(to_text(summary).find(
                "topk:0.01, uncompressed for desk; not the same for 1 other node (all in --json)"),
            std::string::npos)
      << to_text(summary);
}

TEST(SummaryText, says_loudly_when_samples_are_missing_or_too_many) {
  Summary summary = some_summary();
  summary.audit.slots_leased_again = 1;
  summary.audit.duplicates_dropped = 0;
  summary.audit.samples_committed = 59'968;
  EXPECT_EQ(lines_of(to_text(summary)).back(),
            "AUDIT FAILED: 59,968 of 60,000 samples committed, 32 MISSING; 1 slot leased again, 0 duplicates "
            "dropped");
  summary.audit.samples_committed = 60'032;
  EXPECT_EQ(
      lines_of(to_text(summary)).back(),
      "AUDIT FAILED: 60,032 of 60,000 samples committed, 32 TOO MANY; 1 slot leased again, 0 duplicates "
      "dropped");
}

TEST(SummaryText, an_audit_whose_counts_agree_fails_when_slots_were_skipped_or_committed_twice) {
  Summary summary = some_summary();
  summary.audit.slots_missing = 8;
  EXPECT_FALSE(summary.audit.passed());
  EXPECT_EQ(lines_of(to_text(summary)).back(),
            "AUDIT FAILED: 60,000 of 60,000 samples committed, 8 slots SKIPPED; 3 slots leased again, 1 "
            "duplicate dropped");
  summary.audit.slots_twice = 8;
  EXPECT_EQ(
      lines_of(to_text(summary)).back(),
      "AUDIT FAILED: 60,000 of 60,000 samples committed, 8 slots SKIPPED, 8 slots TWICE; 3 slots leased "
      "again, 1 duplicate dropped");
  summary.audit.slots_missing = 0;
  EXPECT_FALSE(summary.audit.passed());
}

TEST(SummaryText, picks_units_that_can_be_read) {
  const auto line_with = [](const std::string& label, const auto& change) {
    Summary summary = some_summary();
    change(summary);
    for (const std::string& line : lines_of(to_text(summary))) {
      if (line.starts_with("  " + label)) return line.substr(16);
    }
    return std::string("no such line");
  };
  const auto memory = [&](std::uint64_t bytes) {
    return line_with("memory", [&](Summary& summary) { summary.memory_bytes = bytes; });
  };
  EXPECT_EQ(memory(0), "0 B");
  EXPECT_EQ(memory(999), "999 B");
  EXPECT_EQ(memory(1'000), "1.0 KB");
  EXPECT_EQ(memory(999'949), "999.9 KB");
  EXPECT_EQ(memory(999'950), "1.0 MB");
  EXPECT_EQ(memory(3'200'000'000'000), "3.2 TB");
  const auto loss = [&](double value) {
    return line_with("loss", [&](Summary& summary) { summary.loss = {value, value, value}; }).substr(0, 9);
  };
  EXPECT_EQ(loss(0.00001), "1.00e-05 ");
  EXPECT_EQ(loss(123'456'789), "1.23e+08 ");
  EXPECT_EQ(loss(kUnknown), "- first, ");
  const auto title = [](double seconds) {
    Summary summary = some_summary();
    summary.seconds = seconds;
    return lines_of(to_text(summary)).front();
  };
  EXPECT_EQ(title(0.5), "sync training with 2 nodes took 0.50 s");
  EXPECT_EQ(title(59.999), "sync training with 2 nodes took 1 min 00 s");
  EXPECT_EQ(title(3'599.7), "sync training with 2 nodes took 1 h 00 min");
  EXPECT_EQ(title(90'061), "sync training with 2 nodes took 25 h 01 min");
}

TEST(SummaryText, says_why_a_run_ended_before_its_last_step) {
  Summary summary = some_summary();
  EXPECT_EQ(to_text(summary).find("ended"), std::string::npos);
  summary.ending = "3 evaluations in a row brought no lower loss than 0.2500";
  EXPECT_NE(to_text(summary).find("  ended         3 evaluations in a row"), std::string::npos);
  EXPECT_EQ(summary_from_json(to_json(summary))->ending, summary.ending);
}

}  // namespace
}  // namespace w5xde
