#include "commands/plan_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "commands/figure_text.h"

namespace w5xde {
namespace {

Plan plan_for(const std::string& link, double slot_seconds, std::uint32_t nodes = 4) {
  Plan plan{.link = link};
  Situation& situation = plan.situation;
  situation.config.model = "mlp:784,1024,1024,10";
  situation.config.data = "random:784,10";
  const auto layout = BlockLayout::make({{"weight", {1024, 1800}}, {"bias", {1034}}}, 1u << 24).value();
  situation.shape = {layout, layout->floats()};
  situation.slot_seconds = slot_seconds;
  situation.samples = 4096;
  situation.sample_bytes = 3144;
  situation.nodes = situation.cores = nodes;
  situation.link = parse_link_speed(link).value();
  plan.prediction = predict(situation);
  plan.advice = advise(situation);
  return plan;
}

TEST(PlanReportTest, behind_a_slow_link_it_recommends_codecs_and_says_what_they_do) {
  const std::string text = to_text(plan_for("100mbit,40ms", 0.005));
  EXPECT_NE(text.find("> sync   topk:0.01"), std::string::npos) << text;
  EXPECT_NE(text.find("--mode sync --gradient-codec topk:0.01 --parameter-codec"), std::string::npos) << text;
  EXPECT_EQ(text.find("--parameter-codec topk:0.01 "), std::string::npos)
      << "four nodes change four times that";
  EXPECT_NE(text.find("Lossy codecs change the result a little"), std::string::npos);
  EXPECT_NE(text.find("With --slots 128"), std::string::npos);
  EXPECT_NE(text.find("12.9 MB to each node, once: 1.03 s for one, 4.12 s for all 4 (first epochs)"),
            std::string::npos)
      << text;
}

TEST(PlanReportTest, the_first_lines_say_whether_to_pool_at_all) {
  const std::string slow = to_text(plan_for("20Mbps,20ms", 0.00826));
  EXPECT_TRUE(
      slow.starts_with("one of these machines alone: 121 batches/s\nDo not pool this: one machine alone is "))
      << slow;
  for (const char* part : {"What would change that", "--slots ", "--batch ", "a link of ",
                           "--gradient-codec ", "If you pool, take", "on 20 Mbit/s, round trip 20 ms"})
    EXPECT_NE(slow.find(part), std::string::npos) << part << '\n' << slow;
  const std::string fast = to_text(plan_for("10gbit", 0.05));
  EXPECT_TRUE(
      fast.starts_with("one of these machines alone: 20.0 batches/s\nPool this: with --mode sync it is "))
      << fast;
  EXPECT_EQ(fast.find("What would change that"), std::string::npos) << fast;
  const std::string here = to_text(plan_for("loopback", 0.05));
  EXPECT_TRUE(here.starts_with("one of these machines alone: 80.0 batches/s\nThese nodes share one machine"))
      << here;
}

TEST(PlanReportTest, a_direction_of_the_link_is_named_with_its_ends) {
  const std::string text = to_text(plan_for("20Mbps,20ms", 0.00826));
  EXPECT_TRUE(text.find("bottleneck    downlink, from the coordinator to its nodes") != std::string::npos ||
              text.find("bottleneck    uplink, from the nodes to their coordinator") != std::string::npos)
      << text;
}

TEST(PlanReportTest, what_momentum_does_to_a_sparse_codec_is_said) {
  Plan plan = plan_for("10mbit,40ms", 0.005);
  plan.situation.config.optimizer.momentum = 0.9;
  plan.advice = advise(plan.situation);
  for (plan.advice.recommended = 0; plan.advice.choice().gradient_codec.codec.kind != GradientKind::topk;)
    ASSERT_LT(++plan.advice.recommended, plan.advice.choices.size());
  EXPECT_NE(to_text(plan).find("With momentum, topk needs more steps"), std::string::npos) << to_text(plan);
}

TEST(PlanReportTest, where_computing_takes_longest_it_recommends_what_is_exact) {
  const std::string text = to_text(plan_for("10gbit", 0.05, 2));
  EXPECT_NE(text.find("> sync   none       none"), std::string::npos) << text;
  EXPECT_NE(text.find("bottleneck    compute"), std::string::npos);
  EXPECT_NE(text.find("the same bits for any number of nodes"), std::string::npos);
}

TEST(PlanReportTest, what_an_exchange_costs_is_said_where_it_was_measured) {
  Plan plan = plan_for("loopback", 0.0001);
  EXPECT_NE(to_text(plan).find("a slot takes 100 µs (as given)"), std::string::npos) << to_text(plan);
  plan.measured = true;
  plan.situation.exchange_seconds = 86e-6;
  EXPECT_NE(to_text(plan).find("a slot takes 100 µs, an exchange 86 µs (measured here)"), std::string::npos)
      << to_text(plan);
}

TEST(PlanReportTest, its_lines_fit_a_terminal) {
  const std::string text = to_text(plan_for("100mbit,40ms", 0.005)) +
                           to_text(plan_for("20Mbps,20ms", 0.00826)) + to_text(plan_for("10gbit", 0.05)) +
                           to_text(plan_for("loopback", 0.05));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(columns_of(text.substr(at, end - at)), 100u) << text.substr(at, end - at);
    at = end + 1;
  }
}

TEST(PlanReportTest, json_has_every_choice_and_which_to_take) {
  const Plan plan = plan_for("100mbit,40ms", 0.005);
  const auto json = nlohmann::json::parse(to_json(plan));
  EXPECT_EQ(json["choices"].size(), plan.advice.choices.size());
  EXPECT_EQ(json["recommended"], plan.advice.recommended);
  EXPECT_EQ(json["asked"]["batches_per_second"], plan.prediction.batches_per_second);
  EXPECT_EQ(json["choices"][0]["mode"], "sync");
  EXPECT_EQ(json["gain"], plan.advice.gain);
  EXPECT_EQ(json["worth_pooling"], plan.advice.worth_pooling());
  EXPECT_EQ(json["remedies"].size(), plan.advice.remedies.size());
}

TEST(PlanReportTest, what_was_asked_for_is_read_back_from_json) {
  const Plan plan = plan_for("100mbit,40ms", 0.005);
  const auto figures = plan_figures_from_json(to_json(plan));
  ASSERT_TRUE(figures.ok()) << figures.error().message;
  EXPECT_EQ(figures->slot_seconds, 0.005);
  EXPECT_EQ(figures->batches_per_second, plan.prediction.batches_per_second);
  EXPECT_EQ(figures->bottleneck, name_of(plan.prediction.bottleneck));
  for (const char* text : {"", "{}", R"({"asked": {}, "slot_seconds": 1})"}) {
    EXPECT_FALSE(plan_figures_from_json(text).ok()) << text;
  }
}

}  // namespace
}  // namespace w5xde
