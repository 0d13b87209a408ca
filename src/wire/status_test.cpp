#include "wire/status.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/printable.h"
#include "wire/value.h"

namespace w5xde {
namespace {

using nlohmann::json;

StatusReport typical() {
  StatusReport report{.run = "fashion", .mode = "sync", .phase = "training", .step = 12, .steps_total = 100};
  report.batches = 96;
  report.batch = 32;
  report.global_batch = 1024;
  report.noise_scale = 5210.5;
  report.working = 3;
  report.epochs = 0.25;
  report.seconds = 3.5;
  report.loss = 0.5;
  report.batches_per_second = 27;
  report.nodes = {{"desk", "10.0.0.7:4711", "torch 1.13.1 cpu", 90, 30.5, 1, 1.25, "working", ""},
                  {"attic", "10.0.0.8:4712", "torch 1.13.1 cpu", 6, 2, 4, 90, "late", "an answer is overdue",
                   "int8, raw", "direct, zstd:1"}};
  report.departures = {{"laptop", 1.5, "no answer for 10 s", 7}};
  return report;
}

Head encoded(const StatusReport& report) {
  Head head;
  encode(report, head);
  return head;
}

Result<StatusReport> decoded(const json& map) {
  Head head;
  encode_value(map, head);
  return decode_status(head, Limits{});
}

TEST(StatusTest, a_report_arrives_as_it_was_sent) {
  EXPECT_EQ(decode_status(encoded(typical()), Limits{}).value(), typical());
  EXPECT_EQ(decode_status(encoded({}), Limits{}).value(), StatusReport{});
}

TEST(StatusTest, before_the_first_step_there_is_no_loss) {
  EXPECT_TRUE(decode_value(encoded({}), Limits{}).value()["loss"].is_null());
  EXPECT_EQ(decode_status(encoded({}), Limits{}).value().loss, std::nullopt);
  EXPECT_EQ(decode_status(encoded({.loss = 0.0}), Limits{}).value().loss, 0.0) << "a loss may be 0";
}

RC_GTEST_PROP(StatusTest, any_report_arrives_as_it_was_sent, ()) {
  StatusReport report;
  report.run = printable(*rc::gen::string<std::string>());
  report.step = *rc::gen::arbitrary<std::uint64_t>();
  report.loss = *rc::gen::arbitrary<double>();
  for (std::uint32_t i = *rc::gen::inRange(0u, 9u); i > 0; --i) {
    report.nodes.push_back({.name = printable(*rc::gen::string<std::string>()),
                            .reason = printable(*rc::gen::string<std::string>())});
    report.departures.push_back(
        {.seconds = *rc::gen::arbitrary<double>(), .reason = printable(*rc::gen::string<std::string>())});
  }
  RC_ASSERT(decode_status(encoded(report), Limits{}).value() == report);
}

TEST(StatusTest, it_is_a_map_with_these_keys) {
  const json map = decode_value(encoded(typical()), Limits{}).value();
  EXPECT_EQ(map.size(), 17u);
  EXPECT_EQ(map["phase"], "training");
  EXPECT_EQ(map["steps_total"], 100);
  EXPECT_EQ(map["nodes"][1], json({{"name", "attic"},
                                   {"peer", "10.0.0.8:4712"},
                                   {"engine", "torch 1.13.1 cpu"},
                                   {"batches", 6},
                                   {"batches_per_second", 2.0},
                                   {"lanes", 4},
                                   {"round_trip_ms", 90.0},
                                   {"standing", "late"},
                                   {"reason", "an answer is overdue"},
                                   {"codec_up", "int8, raw"},
                                   {"codec_down", "direct, zstd:1"}}));
  EXPECT_EQ(map["departures"][0],
            json({{"name", "laptop"}, {"seconds", 1.5}, {"reason", "no answer for 10 s"}, {"batches", 7}}));
}

TEST(StatusTest, what_is_missing_or_of_another_type_is_left_out) {
  const auto report = decoded({{"run", 7},
                               {"step", -1},
                               {"loss", "low"},
                               {"mode", "async"},
                               {"colour", "blue"},
                               {"nodes", {{{"name", "desk"}, {"standing", 1}}, "nobody", 5}},
                               {"departures", "none"}});
  ASSERT_TRUE(report.ok());
  StatusReport expected{.mode = "async"};
  expected.nodes = {{.name = "desk"}};
  EXPECT_EQ(*report, expected);
}

TEST(StatusTest, what_is_no_map_is_refused) {
  EXPECT_EQ(decoded(json::array()).error().to_string(), "corrupt: a status is not a map");
  EXPECT_EQ(decode_status({}, Limits{}).error().kind, ErrorKind::corrupt);
  const Head head = encoded(typical());
  for (std::size_t size = 0; size < head.size(); ++size) {
    EXPECT_FALSE(decode_status(Bytes(head).first(size), Limits{}).ok()) << size;
  }
}

TEST(StatusTest, as_json_it_says_the_same_whatever_is_in_it) {
  StatusReport report = typical();
  const std::string text = to_json(report);
  EXPECT_TRUE(text.ends_with("}\n"));
  const json map = json::parse(text);
  EXPECT_EQ(map, decode_value(encoded(report), Limits{}).value());
  report.nodes[0].name = "\xff\xfe broken utf-8";
  report.loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(json::parse(to_json(report))["loss"].is_null());
}

}  // namespace
}  // namespace w5xde
