#include "forecast/prediction.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "forecast/advice.h"
#include "forecast/traffic.h"

namespace w5xde {
namespace {

// Two matrices and a bias, two million floats.
Situation situation_with(const std::string& link, double slot_seconds, std::uint32_t nodes) {
  Situation situation;
  const auto layout =
      BlockLayout::make({{"wide", {1000, 1600}}, {"narrow", {400, 1000}}, {"bias", {1600}}}, 1u << 24)
          .value();
  situation.shape = {layout, layout->floats()};
  situation.slot_seconds = slot_seconds;
  situation.engine_bytes = 100'000'000;
  situation.samples = 60'000;
  situation.sample_bytes = 785;
  situation.sample_numbers = 785;
  situation.nodes = situation.cores = nodes;
  situation.link = parse_link_speed(link).value();
  return situation;
}

Situation with_codecs(Situation situation, const std::string& gradients, const std::string& parameters) {
  situation.config.transport.gradient_codec = parse_gradient_choice(gradients).value();
  situation.config.transport.parameter_codec = parse_gradient_choice(parameters).value();
  return situation;
}

double total(const Prediction::Seconds& seconds) {
  return seconds.compute + seconds.link_down + seconds.link_up + seconds.round_trips + seconds.coordinator;
}

constexpr double kFloats = 2'001'600;

TEST(TrafficTest, bytes_are_the_codec_s) {
  const Situation plain = situation_with("100mbit", 0.01, 4);
  const auto up = [&](const char* codec) {
    return traffic_of(with_codecs(plain, codec, "none")).contribution;
  };
  const double head = 100;
  EXPECT_NEAR(up("none"), 4 * kFloats, head);
  EXPECT_NEAR(up("fp16"), 2 * kFloats + 4 * kFloats / 1024, head);
  EXPECT_NEAR(up("int8"), kFloats + 4 * kFloats / 1024, head);
  EXPECT_NEAR(up("onebit"), kFloats / 8 + 8 * kFloats / 1024, head);
  EXPECT_NEAR(up("topk:0.01"), 0.01 * kFloats * (4 + 1.276), 0.01 * kFloats * 0.02 + head);
  EXPECT_NEAR(up("powersgd:4"), 4.0 * (4 * (1000 + 1600) + 4 * (400 + 1000) + 1600), head);
}

TEST(TrafficTest, buffers_travel_as_they_are) {
  Situation situation = with_codecs(situation_with("100mbit", 0.01, 4), "int8", "none");
  const double before = traffic_of(situation).contribution;
  situation.shape.floats += 1000;
  EXPECT_DOUBLE_EQ(traffic_of(situation).contribution, before + 4000);
}

TEST(TrafficTest, over_a_link_samples_travel_once_and_their_numbers_each_time) {
  const Situation near = situation_with("loopback", 0.01, 4), far = situation_with("100mbit", 0.01, 4);
  EXPECT_DOUBLE_EQ(traffic_of(near).slot, 1 + 32 * 785);
  EXPECT_DOUBLE_EQ(traffic_of(near).kept_bytes, 0);
  EXPECT_DOUBLE_EQ(traffic_of(far).slot, 1 + 32 * 3);
  EXPECT_DOUBLE_EQ(traffic_of(far).kept_bytes, 60'000.0 * 785);
}

TEST(TrafficTest, what_no_node_can_keep_travels_again) {
  Situation situation = situation_with("100mbit", 0.01, 4);
  situation.samples = 10'000'000;
  EXPECT_GT(traffic_of(situation).slot, 0.9 * 32 * 785);
}

TEST(TrafficTest, numbers_one_by_one_are_a_byte_longer_and_take_time) {
  Situation situation = situation_with("loopback", 0.01, 4);
  EXPECT_DOUBLE_EQ(traffic_of(situation).slot_decode_seconds, 0);
  const double direct = traffic_of(situation).parameters;
  situation.config.transport.serialization = Serialization::generic;
  const Traffic generic = traffic_of(situation);
  EXPECT_DOUBLE_EQ(generic.parameters, direct + kFloats);
  EXPECT_DOUBLE_EQ(generic.slot, 1 + 32 * 2 * 785) << "samples too";
  EXPECT_GT(generic.slot_encode_seconds, 0);
  EXPECT_GT(generic.slot_decode_seconds, generic.slot_encode_seconds);
  EXPECT_GT(generic.parameters_decode_seconds, generic.parameters_encode_seconds);
}

TEST(TrafficTest, zlib_makes_least_of_numbers_one_by_one_and_level_nine_takes_longest) {
  Situation situation = situation_with("loopback", 0.01, 4);
  using enum Serialization;
  const auto with = [&](const char* codec, Serialization serialization) {
    situation.config.transport.codec = parse_lossless_choice(codec).value();
    situation.config.transport.serialization = serialization;
    return traffic_of(situation);
  };
  EXPECT_NEAR(with("zlib:1", direct).parameters / with("none", direct).parameters, 0.92, 0.01);
  EXPECT_NEAR(with("zlib:1", generic).parameters / with("none", generic).parameters, 0.82, 0.01);
  EXPECT_GT(with("zlib:9", direct).parameters_encode_seconds,
            with("zlib:1", direct).parameters_encode_seconds);
  EXPECT_GT(with("zlib:1", direct).parameters_encode_seconds,
            10 * with("lz4", direct).parameters_encode_seconds);
  EXPECT_DOUBLE_EQ(with("lz4", direct).parameters_decode_seconds, 0) << "it travels as it is";
}

TEST(TrafficTest, on_loopback_a_version_is_compressed_on_all_cores) {
  const auto seconds = [](const char* link, std::uint32_t nodes) {
    Situation situation = situation_with(link, 0.01, nodes);
    situation.config.transport.codec = parse_lossless_choice("zlib:9").value();
    return traffic_of(situation).parameters_encode_seconds;
  };
  EXPECT_DOUBLE_EQ(seconds("loopback", 1), 4 * seconds("loopback", 4));
  EXPECT_DOUBLE_EQ(seconds("100mbit", 1), seconds("100mbit", 4)) << "whose cores are not the coordinator's";
}

TEST(TrafficTest, models_travel_in_parts_where_each_part_can_be_stepped_by_itself) {
  const Situation plain = situation_with("100mbit", 0.01, 4);
  const auto parts = [&](const auto& change) {
    Situation situation = plain;
    change(situation.config);
    return traffic_of(situation).parts;
  };
  EXPECT_DOUBLE_EQ(parts([](RunConfig&) {}), 4 * kFloats / kPartBytesUsual);
  const auto coded = [&](const char* gradients, const char* parameters) {
    return traffic_of(with_codecs(plain, gradients, parameters)).parts;
  };
  EXPECT_GT(coded("int8", "none"), 1);
  EXPECT_GT(coded("none", "bf16"), 1);
  for (const double whole :
       {parts([](RunConfig& config) { config.transport.part_bytes = 0; }),
        parts([](RunConfig& config) { config.transport.part_bytes = 5 << 20; }),
        parts([](RunConfig& config) { config.mode = Mode::async; }),
        parts([](RunConfig& config) { config.clip_norm = 1; }),
        parts([](RunConfig& config) { config.growth.policy = BatchPolicy::grows; }),
        parts([](RunConfig& config) { config.transport.serialization = Serialization::generic; }),
        coded("topk", "none"), coded("none", "onebit")})
    EXPECT_DOUBLE_EQ(whole, 1);
}

TEST(PredictionTest, where_computing_takes_longest_nodes_multiply_speed) {
  const Prediction one = predict(situation_with("10gbit", 1, 1));
  const Prediction four = predict(situation_with("10gbit", 1, 4));
  EXPECT_EQ(four.bottleneck, Bottleneck::compute);
  EXPECT_NEAR(one.batches_per_second, 1, 0.1);
  EXPECT_NEAR(four.batches_per_second / one.batches_per_second, 4, 0.5);
}

TEST(PredictionTest, all_nodes_share_the_coordinator_s_link) {
  Situation situation = situation_with("100mbit", 10, 4);
  situation.config.slots = 4;
  situation.config.transport.who_works = WhoWorks::all;
  situation.config.transport.part_bytes = 0;
  const Prediction step = predict(situation);
  const double seconds = 4 * 4 * kFloats / (12.5e6 * 0.95);
  EXPECT_NEAR(step.seconds.link_down, seconds, 0.01 * seconds);
  EXPECT_NEAR(step.seconds.link_up, seconds, 0.01 * seconds);
  EXPECT_NEAR(step.bytes_down, 4 * 4 * kFloats, 1e5);
  EXPECT_NEAR(step.node_bytes_up, 4 * kFloats, 1e3);
  EXPECT_DOUBLE_EQ(step.steps_per_second, 1 / total(step.seconds));
}

TEST(PredictionTest, a_node_computes_as_many_slots_at_once_as_it_has_cores) {
  Situation situation = situation_with("10mbit", 0.1, 10);
  situation.cores = 1;
  const Prediction one = predict(situation);
  EXPECT_NEAR(one.nodes_computing, 1, 0.01);
  situation.cores = 2;  // fewer than nodes: one machine's, and one node has both
  const Prediction two = predict(situation);
  EXPECT_NEAR(two.nodes_computing, 1, 0.01);
  EXPECT_NEAR(two.seconds.compute, one.seconds.compute / 2, 0.1 * one.seconds.compute);
  EXPECT_GT(two.node_memory_bytes, one.node_memory_bytes);
  situation.cores = 20;  // two for each
  EXPECT_NEAR(predict(situation).seconds.compute, two.seconds.compute, 0.05 * two.seconds.compute);
  situation.slot_seconds = 1e-5;  // a whole step takes no longer than waking another thread is worth
  situation.cores = 1;
  const double alone = predict(situation).seconds.compute;
  situation.cores = 2;
  EXPECT_NEAR(predict(situation).seconds.compute, alone, 0.01 * alone);
}

TEST(PredictionTest, nodes_that_rest_send_nothing) {
  Situation situation = situation_with("100mbit", 10, 10);
  situation.cores = 2;
  situation.config.slots = 2;
  situation.config.transport.who_works = WhoWorks::all;
  EXPECT_NEAR(predict(situation).nodes_computing, 2, 0.1);
  EXPECT_NEAR(predict(situation).bytes_up, 2 * 4 * kFloats, 0.05 * 2 * 4 * kFloats);
}

TEST(PredictionTest, a_node_that_the_link_would_keep_too_long_has_no_part) {
  Situation situation = situation_with("100mbit", 0.001, 4);
  situation.config.transport.who_works = WhoWorks::all;
  EXPECT_LT(predict(situation).nodes_computing, 1.5);
  EXPECT_LT(predict(situation).bytes_up, 2.5 * 4 * kFloats);
  situation.link = parse_link_speed("loopback").value();
  EXPECT_DOUBLE_EQ(predict(situation).nodes_computing, 4);
}

TEST(PredictionTest, in_parts_a_model_goes_down_while_it_comes_up) {
  Situation situation = situation_with("100mbit", 0.001, 1);
  const Prediction parts = predict(situation);
  situation.config.transport.part_bytes = 0;
  const Prediction whole = predict(situation);
  const double way = 4 * kFloats / (12.5e6 * 0.95), part = kPartBytesUsual / (12.5e6 * 0.95);
  EXPECT_NEAR(total(whole.seconds) - total(parts.seconds), way - part, 0.05 * way);
  EXPECT_NEAR(parts.seconds.link_up, way, 0.01 * way) << "one direction in full";
  EXPECT_NEAR(parts.seconds.link_down, part, 0.05 * part) << "of the other the last part";
  EXPECT_DOUBLE_EQ(parts.bytes_down, whole.bytes_down);
  EXPECT_NEAR(static_cast<double>(parts.coordinator_memory_bytes - whole.coordinator_memory_bytes),
              4 * kFloats, 1);
}

TEST(PredictionTest, in_parts_the_direction_that_takes_longer_is_waited_for) {
  const Situation situation = with_codecs(situation_with("100mbit", 0.001, 1), "int8", "none");
  const Prediction::Seconds seconds = predict(situation).seconds;
  const double way = 4 * kFloats / (12.5e6 * 0.95);
  EXPECT_NEAR(seconds.link_down, way, 0.01 * way);
  EXPECT_LT(seconds.link_up, 0.1 * way / 4) << "until the first part can go down";
}

TEST(PredictionTest, on_loopback_parts_change_nothing) {
  Situation situation = situation_with("loopback", 0.001, 2);
  const double parts = predict(situation).steps_per_second;
  situation.config.transport.part_bytes = 0;
  EXPECT_DOUBLE_EQ(predict(situation).steps_per_second, parts);
}

TEST(PredictionTest, as_many_nodes_take_part_as_make_a_step_faster) {
  EXPECT_DOUBLE_EQ(predict(situation_with("100mbit", 0.001, 4)).nodes_computing, 1);
  EXPECT_DOUBLE_EQ(predict(situation_with("100mbit", 1.0, 4)).nodes_computing, 4);
  EXPECT_DOUBLE_EQ(predict(situation_with("10gbit", 0.1, 4)).nodes_computing, 4);
  EXPECT_DOUBLE_EQ(predict(situation_with("loopback", 0.1, 4)).nodes_computing, 1) << "with all four cores";
}

TEST(PredictionTest, one_of_a_machine_s_nodes_has_all_cores_where_steps_are_long_enough_for_lanes) {
  Situation situation = situation_with("loopback", 1e-4, 10);
  situation.cores = 2;
  situation.shape.floats = 430;
  situation.config.slots = 40;
  const Prediction one = predict(situation);
  EXPECT_DOUBLE_EQ(one.nodes_computing, 1);
  situation.config.transport.who_works = WhoWorks::all;
  EXPECT_GT(one.steps_per_second, predict(situation).steps_per_second);
  situation.config.transport.who_works = WhoWorks::fastest;
  situation.config.slots = 10;
  EXPECT_DOUBLE_EQ(predict(situation).nodes_computing, 2) << "one would have one lane";
}

TEST(PredictionTest, a_small_model_far_away_waits_for_round_trips) {
  Situation situation = situation_with("1gbit,100ms", 1e-4, 2);
  const auto layout = BlockLayout::make({{"weight", {10, 20}}}, 1u << 20).value();
  situation.shape = {layout, layout->floats()};
  const Prediction step = predict(situation);
  EXPECT_EQ(step.bottleneck, Bottleneck::round_trips);
  EXPECT_NEAR(step.steps_per_second, 10, 1);
  situation.config.mode = Mode::async;
  EXPECT_GT(predict(situation).batches_per_second, step.batches_per_second);
}

TEST(PredictionTest, long_round_trips_slow_large_transfers_down_at_their_begin) {
  const double near = predict(situation_with("1gbit", 0.1, 4)).steps_per_second;
  const Prediction far = predict(situation_with("1gbit,100ms", 0.1, 4));
  EXPECT_GT(1 / far.steps_per_second - 1 / near, 2 * 0.1);
  EXPECT_LT(1 / far.steps_per_second - 1 / near, 30 * 0.1);
}

TEST(PredictionTest, an_exchange_costs_what_makes_steps_take_as_long_as_they_were_seen_to) {
  for (const char* link : {"loopback", "1gbit,1ms"}) {
    Situation situation = situation_with(link, 1e-4, 4);
    const auto layout = BlockLayout::make({{"weight", {10, 20}}}, 1u << 20).value();
    situation.shape = {layout, layout->floats()};
    for (const double exchange : {30e-6, 120e-6, 700e-6}) {
      situation.exchange_seconds = exchange;
      const double seen = 1 / predict(situation).steps_per_second;
      situation.exchange_seconds = kExchangeSeconds;
      EXPECT_NEAR(exchange_seconds_for(situation, seen), exchange, 0.02 * exchange) << link;
    }
    EXPECT_GT(exchange_seconds_for(situation, 0), 0) << "no pool is that quick";
    EXPECT_LT(exchange_seconds_for(situation, 1000), 0.01) << "nor does an exchange ever take that long";
  }
}

TEST(PredictionTest, many_nodes_exchanges_are_their_coordinator_s_work) {
  Situation situation = situation_with("10gbit", 1e-3, 64);
  const auto layout = BlockLayout::make({{"weight", {10, 20}}}, 1u << 20).value();
  situation.shape = {layout, layout->floats()};
  situation.config.slots = 64;
  situation.config.transport.who_works = WhoWorks::all;
  situation.exchange_seconds = 1e-3;
  const Prediction step = predict(situation);
  EXPECT_EQ(step.bottleneck, Bottleneck::coordinator);
  EXPECT_NEAR(step.seconds.coordinator, 64 * 0.5e-3, 0.1 * 64 * 0.5e-3);
}

TEST(PredictionTest, codecs_cost_memory_and_save_bytes) {
  const Situation plain = situation_with("100mbit", 0.01, 4);
  const Prediction exact = predict(plain), lossy = predict(with_codecs(plain, "int8", "int8"));
  EXPECT_LT(lossy.bytes_down, exact.bytes_down / 3);
  EXPECT_LT(lossy.bytes_up, exact.bytes_up / 3);
  EXPECT_GT(lossy.coordinator_memory_bytes, exact.coordinator_memory_bytes);
  EXPECT_GT(lossy.node_memory_bytes, exact.node_memory_bytes);
  EXPECT_GT(exact.node_memory_bytes, plain.engine_bytes);
}

TEST(PredictionTest, codecs_take_as_long_as_on_this_machine) {
  Situation situation = with_codecs(situation_with("loopback", 0.01, 4), "int8", "none");
  situation.config.transport.codec = parse_lossless_choice("zlib:9").value();
  const Traffic usual = traffic_of(situation);
  const double before = predict(situation).steps_per_second;
  situation.codec_pace = 0.5;
  EXPECT_DOUBLE_EQ(traffic_of(situation).parameters_encode_seconds, usual.parameters_encode_seconds / 2);
  EXPECT_DOUBLE_EQ(traffic_of(situation).contribution, usual.contribution);
  EXPECT_GT(predict(situation).steps_per_second, 1.1 * before);
  // As far as this machine may be from the one that usual figures are of, with sanitizers looking on.
  const double pace = measured_codec_pace();
  EXPECT_GT(pace, 0.05);
  EXPECT_LT(pace, 500);
}

TEST(PredictionTest, async_is_as_fast_as_what_is_busy_longest) {
  Situation situation = situation_with("100mbit", 0.001, 4);
  situation.config.mode = Mode::async;
  const Prediction update = predict(situation);
  EXPECT_EQ(update.bottleneck, Bottleneck::link_down);
  EXPECT_DOUBLE_EQ(update.steps_per_second, 1 / update.seconds.link_down);
  EXPECT_DOUBLE_EQ(update.batches_per_second, 4 * update.steps_per_second);
}

TEST(AdviceTest, a_slow_link_calls_for_codecs_and_a_fast_one_for_none) {
  EXPECT_NE(advise(situation_with("10mbit", 0.01, 4)).recommended, 0u);
  EXPECT_EQ(advise(situation_with("10gbit", 0.05, 2)).recommended, 0u);
}

TEST(AdviceTest, it_is_the_gentlest_within_a_tenth_of_the_fastest) {
  for (const char* link : {"1mbit", "100mbit,40ms", "1gbit,1ms", "10gbit"}) {
    const Advice advice = advise(situation_with(link, 0.02, 4));
    const double fastest = advice.choices[advice.fastest].prediction.batches_per_second;
    EXPECT_GE(advice.choice().prediction.batches_per_second, 0.9 * fastest) << link;
    for (std::size_t i = 0; i < advice.recommended; ++i)
      EXPECT_LT(advice.choices[i].prediction.batches_per_second, 0.9 * fastest) << link;
  }
}

TEST(AdviceTest, what_is_hardly_faster_than_exact_is_not_taken_for_it) {
  for (const double slot_seconds : {1e-4, 1e-3, 1e-2, 1e-1}) {
    for (const char* link : {"1mbit", "10mbit", "100mbit", "1gbit,1ms", "10gbit", "loopback"}) {
      const Advice advice = advise(situation_with(link, slot_seconds, 4));
      const double exact = advice.choices.front().prediction.batches_per_second;
      EXPECT_TRUE(advice.recommended == 0 || advice.choice().prediction.batches_per_second * 0.9 > exact)
          << link << ' ' << slot_seconds;
    }
  }
}

// The densest that goes down, of what is considered; 0: none is sparse.
double density_down(const Situation& situation) {
  double density = 0;
  for (const Advice::Choice& choice : advise(situation).choices)
    density = std::max(density, choice.parameter_codec.codec.density);
  return density;
}

TEST(AdviceTest, what_nodes_change_together_goes_down_whole_or_not_sparsely) {
  EXPECT_DOUBLE_EQ(density_down(situation_with("10mbit", 0.01, 2)), 0.02);
  EXPECT_DOUBLE_EQ(density_down(situation_with("10mbit", 0.01, 7)), 0.07);
  EXPECT_EQ(density_down(situation_with("10mbit", 0.01, 20)), 0) << "int8 has fewer bytes";
  Situation spread = situation_with("10mbit", 0.01, 4);
  spread.config.optimizer.momentum = 0.9;
  EXPECT_EQ(density_down(spread), 0);
  spread.config.optimizer = {.kind = OptimizerOptions::Kind::adam};
  EXPECT_EQ(density_down(spread), 0);
}

TEST(AdviceTest, a_pool_is_worth_it_where_it_is_faster_than_one_of_its_machines) {
  const Advice fast = advise(situation_with("10gbit", 0.05, 4));
  EXPECT_TRUE(fast.worth_pooling());
  EXPECT_GT(fast.gain, 3);
  EXPECT_TRUE(fast.remedies.empty());
  const Situation slow = situation_with("1mbit,100ms", 0.001, 4);
  const Advice not_worth_it = advise(slow);
  EXPECT_FALSE(not_worth_it.worth_pooling());
  EXPECT_DOUBLE_EQ(not_worth_it.gain, not_worth_it.choice().prediction.batches_per_second * 0.001);
}

TEST(AdviceTest, where_it_is_not_the_least_change_that_helps_is_found) {
  const Situation slow = situation_with("100mbit,20ms", 0.008, 4);
  const Advice advice = advise(slow);
  ASSERT_FALSE(advice.worth_pooling()) << advice.gain;
  ASSERT_EQ(advice.remedies.size(), 3u);
  for (const Remedy& remedy : advice.remedies) {
    EXPECT_GT(remedy.factor, 1u);
    EXPECT_GE(remedy.gain, 1.1) << static_cast<int>(remedy.kind);
  }
  // Half of it would not do.
  Situation other = slow;
  other.config.slots *= advice.remedies[0].factor / 2;
  EXPECT_LT(predict(other).batches_per_second / other.alone_batches_per_second(), 1.1);
  EXPECT_TRUE(advise(situation_with("loopback", 0.0001, 4)).remedies.empty()) << "one machine";
}

}  // namespace
}  // namespace w5xde
