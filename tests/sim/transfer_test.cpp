// How things travel: whatever the preset, the run is the same; whatever a codec loses is said later, or
// counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "run/presets.h"
#include "sim/sim_pool.h"
#include "w5xde/no_gradient.h"
#include "wire/generic_tensors.h"
#include "wire/hello.h"

namespace w5xde {
namespace {

RunConfig with_preset(std::string_view name) {
  RunConfig config = sim_config();
  config.transport = preset(name).value();
  return config;
}

TEST(TransferTest, every_preset_without_loss_comes_to_the_same_bits) {
  const std::string expected = plain_hash(sim_config());
  for (const std::string_view name : preset_names()) {
    if (name == "gradient-compression" || name == "adaptive-lossy") continue;
    EXPECT_EQ(run_to_end(with_preset(name), 3).parameters_hash, expected) << name;
  }
}

// What the fake engine says of its bias, in every slot.
std::map<std::string, std::uint64_t> without_gradient(const RunConfig& config, float first, float rest) {
  SimPool pool(config);
  for (int i = 0; i < 2; ++i) {
    pool.add_node({.touch = [=](std::uint64_t, std::span<float> contribution) -> Status {
      const FakeEngine engine;
      const auto& bias = engine.description().parameters->entries()[1];
      std::fill_n(contribution.begin() + static_cast<std::ptrdiff_t>(bias.offset), bias.shape.elements(),
                  rest);
      contribution[bias.offset] = first;
      return {};
    }});
  }
  pool.start();
  EXPECT_EQ(pool.run(), "ok");
  return pool.newest_checkpoint().info().steps_without_gradient;
}

TEST(TransferTest, a_parameter_that_has_no_gradient_has_none_when_it_arrives) {
  for (const char* name : {"adaptive", "early"}) {
    const RunConfig config = with_preset(name);
    EXPECT_EQ(without_gradient(config, kNoGradient, kNoGradient),
              (std::map<std::string, std::uint64_t>{{"bias", config.steps}}))
        << name;
    EXPECT_TRUE(without_gradient(config, 0.0F, 0.0F).empty()) << name;
  }
}

// fp16 makes -0.0 of it.
TEST(TransferTest, a_gradient_that_a_codec_rounds_to_zero_is_still_one) {
  RunConfig config = sim_config();
  config.transport.gradient_codec = parse_gradient_choice("fp16").value();
  EXPECT_TRUE(without_gradient(config, -1e-20F, 0.5F).empty());
}

// A node that is played by hand sees what a preset puts on the wire.
TEST(TransferTest, every_preset_shows_on_the_wire) {
  for (const std::string_view name : preset_names()) {
    SCOPED_TRACE(name);
    const RunConfig config = with_preset(name);
    const Transport& transport = config.transport;
    SimPool pool(config);
    pool.start(1);
    auto peer = pool.connect_by_hand();
    peer->say(FrameType::hello, Hello{.name = "hand"});
    ASSERT_TRUE(pool.run_until([&] { return peer->count(FrameType::offer) > 0; }));
    const Offer offer = decode_offer(peer->take(FrameType::offer)->head, Limits{}).value();
    EXPECT_EQ(offer.socket_buffer, transport.socket_buffer);
    EXPECT_EQ(offer.receive_chunk, transport.receive_chunk);
    EXPECT_EQ(offer.keep_alive, transport.keep_alive);
    EXPECT_EQ(offer.quick_ack, transport.quick_ack);
    EXPECT_EQ(offer.combined_send, transport.combined_send);
    peer->say(FrameType::ready, Ready{.model_fingerprint = offer.model_fingerprint, .engine = "hand"});
    ASSERT_TRUE(pool.run_until([&] { return peer->count(FrameType::lease) > 0; }));

    const auto frame = *peer->take(FrameType::lease);
    const Lease lease = decode_lease(frame.head, Limits{}).value();
    EXPECT_EQ(lease.coding.form, transport.generic() ? Form::generic : Form::direct);
    const Encoding answer = from_wire(lease.answer).value();
    EXPECT_EQ(answer.form, name == "gradient-compression" ? Form::gradient
                           : transport.generic()          ? Form::generic
                                                          : Form::direct);
    EXPECT_EQ(answer.gradient.kind, name == "gradient-compression" ? GradientKind::int8 : GradientKind::none);
    // The model is far smaller than any threshold.
    EXPECT_EQ(answer.lossless.value_or(SectionCodec()).lossless,
              transport.codec_threshold > 0 ? LosslessCodec() : transport.codec_up(0).codec);
    EXPECT_EQ(answer.lossless.has_value(), !transport.codec.automatic);

    const auto sent = *peer->take(FrameType::parameters);
    const Parameters parameters = decode_parameters(sent.head, Limits{}).value();
    EXPECT_EQ(parameters.coding.form, lease.coding.form);
    if (transport.generic() && sent.header.codec == 0) {
      const auto decoded = decode_generic_tensors(sent.payload, Limits{});
      ASSERT_TRUE(decoded.ok());
      EXPECT_EQ(decoded->tensors, parameters.tensors);
    }
    // A codec that gains nothing leaves the payload as it was.
    const LosslessCodec down = transport.codec.codec;
    EXPECT_TRUE(sent.header.codec == 0 || sent.header.codec == static_cast<std::uint8_t>(down.kind));
    if (transport.generic() && down.kind == LosslessKind::zlib) {
      EXPECT_NE(sent.header.codec, 0);
    }
  }
}

TEST(TransferTest, stateless_codecs_come_to_the_same_bits_for_any_nodes) {
  for (const char* codec : {"fp16", "bf16"}) {
    RunConfig config = sim_config();
    config.transport.gradient_codec = parse_gradient_choice(codec).value();
    config.slots = 22;  // in pieces of two, the last one of which is not of the step's tree alone
    const std::string alone = run_to_end(config, 1).parameters_hash;
    EXPECT_NE(alone, plain_hash(config)) << codec << " is lossy";
    for (const unsigned nodes : {3u, 7u}) {
      EXPECT_EQ(run_to_end(config, nodes).parameters_hash, alone) << codec << ", " << nodes << " nodes";
    }
  }
}

TEST(TransferTest, coded_parameters_come_to_the_same_bits_whoever_comes_and_goes) {
  for (const char* codec : {"bf16", "int8", "topk:0.2", "onebit", "powersgd:1"}) {
    SCOPED_TRACE(codec);
    RunConfig config = sim_config();
    config.transport.parameter_codec = parse_gradient_choice(codec).value();
    const std::string alone = run_to_end(config, 1).parameters_hash;
    EXPECT_NE(alone, plain_hash(config)) << "it is lossy";
    EXPECT_EQ(run_to_end(config, 4).parameters_hash, alone);

    SimPool pool(config);
    pool.add_nodes(3);
    std::uint64_t due = 12;
    std::size_t next = 0;
    pool.on_turn = [&] {
      if (pool.coordinator().status().batches < due) return;
      if (pool.kill_node(next++ % pool.nodes())) due += 20;
    };
    ASSERT_EQ(pool.run(), "ok");
    EXPECT_EQ(pool.coordinator().summary().parameters_hash, alone);
  }
}

TEST(TransferTest, a_late_comer_is_brought_up_to_date_and_takes_part) {
  RunConfig config = sim_config();
  config.steps = 1'000'000;  // to be stopped
  config.transport.parameter_codec = parse_gradient_choice("int8").value();
  SimPool pool(config);
  pool.add_nodes(1);
  pool.start();
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().batches >= 60; }));
  pool.add_nodes(1);
  EXPECT_TRUE(pool.run_until([&] {
    const Summary summary = pool.coordinator().summary();
    return summary.per_node.size() == 2 && summary.per_node[1].batches > 0;
  }));
}

TEST(TransferTest, a_coordinator_that_is_killed_shows_nodes_what_it_showed_them_before) {
  RunConfig config = sim_config();
  config.transport.parameter_codec = parse_gradient_choice("int8").value();
  const std::string expected = run_to_end(config, 1).parameters_hash;
  config.checkpoint_seconds = 1e-9;  // after every step
  SimPool pool(config);
  pool.add_nodes(2);
  pool.start();
  for (const std::uint64_t batches : {30u, 90u, 150u}) {
    ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().batches >= batches; }));
    pool.restart_coordinator();
  }
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, expected);
}

TEST(TransferTest, every_gradient_codec_trains_and_says_less) {
  const Summary exact = run_to_end(sim_config(), 2);
  // Alone, a node has one contribution a step; how many two have, depends on who is quicker when.
  const std::uint64_t exact_bytes = run_to_end(sim_config(), 1).bytes.received;
  for (const char* codec : {"fp16", "bf16", "int8", "onebit", "topk:0.1", "powersgd:1"}) {
    SCOPED_TRACE(codec);
    RunConfig config = sim_config();
    config.transport.gradient_codec = parse_gradient_choice(codec).value();
    const Summary summary = run_to_end(config, 2);
    EXPECT_LT(summary.loss.last, 0.9 * summary.loss.first);
    EXPECT_LT(summary.loss.last, 1.2 * exact.loss.last);
    // Steps of a stateless codec are cut in more pieces, which shows with a model of a few hundred floats.
    if (!parse_gradient_codec(codec)->stateless()) {
      EXPECT_LT(run_to_end(config, 1).bytes.received, exact_bytes);
    }
  }
}

TEST(TransferTest, what_a_killed_node_had_still_to_say_is_counted) {
  RunConfig config = sim_config();
  config.transport.gradient_codec = parse_gradient_choice("topk:0.1").value();
  SimPool pool(config);
  pool.add_nodes(2);
  unsigned killed = 0;
  std::uint64_t due = 60;
  pool.on_turn = [&] {
    if (killed < 2 && pool.coordinator().status().batches >= due && pool.kill_node(killed)) {
      ++killed;
      due += 60;
    }
  };
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().audit.feedback_lost, 2u);
}

TEST(TransferTest, samples_cross_the_link_once_and_change_no_bit) {
  const auto bytes_sent = [](SampleCaching cache) {
    RunConfig config = sim_config();
    config.transport.sample_cache = cache;
    const Summary summary = run_to_end(config, 2);
    EXPECT_EQ(summary.parameters_hash, plain_hash(sim_config())) << name_of(cache);
    return summary.bytes.sent;
  };
  // 4,288 samples are 1,000 different ones, each sent to two nodes at most.
  EXPECT_LT(bytes_sent(SampleCaching::on), bytes_sent(SampleCaching::off) * 3 / 4);
}

// A model of a few floats and samples of 4 KB: what is sent is samples, and little else.
TEST(TransferTest, a_second_epoch_sends_less_than_a_fiftieth_of_what_the_first_did) {
  const auto bytes_sent = [](double epochs) {
    RunConfig config = sim_config();
    config.data = "random:1000,10,500";
    config.steps = 0;
    config.epochs = epochs;
    config.transport.sample_cache = SampleCaching::on;
    const Summary summary = run_to_end(config, 1);
    EXPECT_EQ(summary.parameters_hash, plain_hash(config));
    return summary.bytes.sent;
  };
  const std::uint64_t first = bytes_sent(1);
  EXPECT_GT(first, 500u * 4000);
  EXPECT_LT(bytes_sent(2) - first, first / 50);
}

class HandedFeedback : public testing::Test {
 protected:
  HandedFeedback() {
    config_.transport.gradient_codec = parse_gradient_choice("topk:0.1").value();
    config_.optimizer = {.kind = OptimizerOptions::Kind::sgd, .learning_rate = 0.01, .momentum = 0.9};
    config_.checkpoint_seconds = 1e-9;
  }
  // Feedback of both blocks, each float another.
  std::vector<float> feedback() const {
    std::vector<float> floats(2 * FakeEngine().description().parameters->floats());
    for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i % 50) * 0.001F;
    return floats;
  }
  static void say(HandPeer& peer, bool leaving, std::span<const float> floats) {
    peer.say(FrameType::feedback,
             Feedback{.leaving = leaving,
                      .tensors = {{DType::f32, Shape{static_cast<std::int64_t>(floats.size())}}}},
             std::as_bytes(floats));
  }
  static std::vector<float> floats_of(const ReceivedFrame& frame) {
    std::vector<float> floats(frame.payload.size() / sizeof(float));
    std::ranges::copy(frame.payload, std::as_writable_bytes(std::span(floats)).begin());
    return floats;
  }
  static bool has_feedback(const CheckpointFile& checkpoint) {
    const auto layout = checkpoint.layout_of("feedback");
    if (!layout) return false;
    std::vector<float> floats(layout->floats());
    return checkpoint.read("feedback", *layout, floats).ok() &&
           std::ranges::any_of(floats, [](float value) { return value != 0; });
  }

  RunConfig config_ = sim_config();
};

TEST_F(HandedFeedback, of_a_node_that_leaves_goes_to_another) {
  SimPool pool(config_);
  pool.start(2);
  auto leaving = pool.enrol_by_hand("leaving");
  auto staying = pool.enrol_by_hand("staying");
  ASSERT_TRUE(pool.run_until([&] { return leaving->count(FrameType::lease) > 0; }));
  say(*leaving, true, feedback());
  leaving->connection().close(disconnected("told to stop"));
  ASSERT_TRUE(pool.run_until([&] { return staying->count(FrameType::feedback) > 0; }));
  EXPECT_EQ(floats_of(*staying->take(FrameType::feedback)), feedback());
}

TEST_F(HandedFeedback, that_is_not_a_number_is_refused) {
  SimPool pool(config_);
  pool.start(1);
  auto peer = pool.enrol_by_hand("broken");
  ASSERT_TRUE(pool.run_until([&] { return peer->count(FrameType::lease) > 0; }));
  auto floats = feedback();
  floats[3] = NAN;
  say(*peer, true, floats);
  ASSERT_TRUE(pool.run_until([&] { return peer->closed(); }));
  EXPECT_NE(peer->why().find("NaN or infinity"), std::string::npos) << peer->why();
}

TEST_F(HandedFeedback, is_in_the_last_checkpoint_though_gathered_while_nodes_evaluate) {
  SimPool pool(config_);
  pool.evaluate_on(open_dataset("synthetic", Split::test, 1).value());
  pool.add_nodes(3);
  ASSERT_EQ(pool.run(), "ok");
  ASSERT_TRUE(pool.coordinator().summary().evaluation.has_value());
  const auto checkpoint = pool.newest_checkpoint();
  EXPECT_EQ(checkpoint.info().step, config_.steps);
  EXPECT_TRUE(has_feedback(checkpoint));
}

TEST_F(HandedFeedback, is_in_the_checkpoint_and_goes_to_who_joins_the_resumed_run) {
  config_.steps = 1'000'000;  // no run ends before a checkpoint is on the disk
  SimPool pool(config_);
  pool.add_nodes(2);
  pool.start();
  ASSERT_TRUE(pool.run_until([&] {
    const auto checkpoint = RunFolder::look(pool.run_folder()).value().newest();
    return checkpoint.ok() && *checkpoint && has_feedback(**checkpoint);
  }));
  pool.kill_nodes_for_good();
  pool.restart_coordinator();
  auto heir = pool.enrol_by_hand("heir");
  ASSERT_TRUE(pool.run_until([&] { return heir->count(FrameType::feedback) > 0; }));
  const auto floats = floats_of(*heir->take(FrameType::feedback));
  ASSERT_EQ(floats.size(), feedback().size());
  EXPECT_TRUE(std::ranges::any_of(floats, [](float value) { return value != 0; }));
  EXPECT_TRUE(std::ranges::all_of(floats, [](float value) { return std::isfinite(value); }));
}

}  // namespace
}  // namespace w5xde
