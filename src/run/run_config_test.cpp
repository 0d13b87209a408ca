#include "run/run_config.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace w5xde {
namespace {

RunConfig sound() {
  return {.model = "lenet", .data = "synthetic"};
}

std::string refusal(const std::function<void(RunConfig&)>& change) {
  RunConfig config = sound();
  change(config);
  const Status status = config.check();
  return status.ok() ? "accepted" : status.error().to_string();
}

TEST(RunConfigTest, the_defaults_with_a_model_and_data_are_sound) {
  EXPECT_EQ(refusal([](RunConfig&) {}), "accepted");
}

TEST(RunConfigTest, what_makes_no_sense_is_refused_by_the_name_of_its_flag) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::pair<std::string, std::function<void(RunConfig&)>>> wrong = {
      {"no model; say --model", [](RunConfig& c) { c.model = ""; }},
      {"no data; say --data", [](RunConfig& c) { c.data = ""; }},
      {"--batch 0", [](RunConfig& c) { c.batch = 0; }},
      {"--slots and --accumulate", [](RunConfig& c) { c.slots = 0; }},
      {"--slots and --accumulate", [](RunConfig& c) { c.accumulate = 0; }},
      {"4294967296 slots a step; at most", [](RunConfig& c) { c.slots = c.accumulate = 1u << 16; }},
      {"--epochs", [](RunConfig& c) { c.epochs = -1; }},
      {"--epochs", [&](RunConfig& c) { c.epochs = nan; }},
      {"--seconds", [](RunConfig& c) { c.seconds = -1; }},
      {"--clip-norm", [](RunConfig& c) { c.clip_norm = -1; }},
      {"--checkpoint-seconds", [](RunConfig& c) { c.checkpoint_seconds = 0; }},
      {"--split is the part", [](RunConfig& c) { c.split = 1; }},
      {"--split is the part", [](RunConfig& c) { c.split = -0.1; }},
      {"--split is the part", [&](RunConfig& c) { c.split = nan; }},
      {"leave one of the two out",
       [](RunConfig& c) {
         c.split = 0.1;
         c.evaluation_data = "synthetic";
       }},
      {"--target-accuracy is a part of 1", [](RunConfig& c) { c.target_accuracy = 1.5; }},
      {"--target-loss is a number", [&](RunConfig& c) { c.target_loss = nan; }},
      {"--patience looks at the evaluations on the way", [](RunConfig& c) { c.patience = 3; }},
      {"--target-accuracy looks at the evaluations", [](RunConfig& c) { c.target_accuracy = 0.8; }},
      {"--target-loss looks at the evaluations", [](RunConfig& c) { c.target_loss = -2; }},
      {"--threads", [](RunConfig& c) { c.threads = 0; }},
      {"--keep", [](RunConfig& c) { c.keep = 0; }},
      {"--max-staleness", [](RunConfig& c) { c.max_staleness = 0; }},
      {"momentum", [](RunConfig& c) { c.optimizer.momentum = -1; }},
      {"--socket-buffer", [](RunConfig& c) { c.transport.socket_buffer = 2 * kGiB; }},
      {"--global-batch-every", [](RunConfig& c) { c.growth.every = 0; }},
      {"needs --mode sync",
       [](RunConfig& c) {
         c.growth.policy = BatchPolicy::grows;
         c.mode = Mode::async;
       }},
      {"needs --slots 2",
       [](RunConfig& c) {
         c.growth.policy = BatchPolicy::grows;
         c.slots = 1;
       }},
      {"--global-batch-max 1000 is less than batch × slots: 1024",
       [](RunConfig& c) { c.growth = {.policy = BatchPolicy::grows, .samples_max = 1000}; }},
      {"--gradient-codec topk:0.01 holds back",
       [](RunConfig& c) {
         c.growth.policy = BatchPolicy::grows;
         c.transport.gradient_codec = parse_gradient_choice("topk:0.01").value();
       }},
      {"--gradient-codec auto holds back",
       [](RunConfig& c) {
         c.growth.policy = BatchPolicy::grows;
         c.transport.gradient_codec.automatic = true;
       }},
      {"a cosine schedule needs to know its end",
       [](RunConfig& c) {
         c.schedule.course = Schedule::Course::cosine;
         c.seconds = 5;
       }},
  };
  for (const auto& [reason, change] : wrong) {
    const std::string told = refusal(change);
    EXPECT_TRUE(told.starts_with("invalid: ")) << told;
    EXPECT_NE(told.find(reason), std::string::npos) << told;
  }
}

TEST(RunConfigTest, a_schedule_gets_its_end_when_the_run_s_length_is_known) {
  RunConfig config = sound();
  config.schedule = parse_schedule("cosine+warmup:3", 1).value();
  EXPECT_EQ(config.schedule_over(40)->total_steps, 40u);
  EXPECT_FALSE(config.schedule_over(0).ok()) << "a cosine without an end";
  config.schedule = {};
  EXPECT_TRUE(config.schedule_over(0).ok());
}

TEST(RunConfigTest, the_first_end_that_is_reached_is_the_end) {
  RunConfig config = sound();
  config.slots = 4;
  config.accumulate = 2;
  EXPECT_EQ(config.step_slots(), 8u);
  EXPECT_EQ(config.slots_total(50), 50u) << "no end is given: one epoch";
  config.steps = 5;
  EXPECT_EQ(config.slots_total(50), 40u);
  config.epochs = 0.5;
  EXPECT_EQ(config.slots_total(50), 25u);
  config.epochs = 2.01;
  EXPECT_EQ(config.slots_total(50), 40u);
  config.steps = 0;
  EXPECT_EQ(config.slots_total(50), 101u) << "a part of a slot is a slot";
  EXPECT_EQ(config.steps_total(50), 13u) << "a part of a step is a step";
  config.seconds = 9;
  EXPECT_EQ(config.slots_total(50), 101u);
  config.epochs = 0;
  EXPECT_EQ(config.slots_total(50), 0u) << "time alone ends it";
  EXPECT_EQ(config.steps_total(50), 0u);
}

TEST(RunConfigTest, where_steps_grow_their_number_is_no_end_in_slots) {
  RunConfig config = sound();
  config.growth.policy = BatchPolicy::grows;
  EXPECT_TRUE(config.check().ok());
  EXPECT_EQ(config.slots_total(50), 50u);
  config.steps = 5;
  EXPECT_EQ(config.slots_total(50), 0u);
  config.epochs = 2;
  EXPECT_EQ(config.slots_total(50), 100u);
}

TEST(RunConfigTest, modes_have_names) {
  for (const Mode mode : {Mode::sync, Mode::async}) EXPECT_EQ(parse_mode(name_of(mode)).value(), mode);
  EXPECT_EQ(parse_mode("lockstep").error().message, "'lockstep' is no mode; use sync or async");
}

}  // namespace
}  // namespace w5xde
