// Contributions and versions that travel in parts, and steps that are taken part by part.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "learn/seeds.h"
#include "sim/fault_schedule.h"
#include "sim/sim_pool.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kFloats = 64;  // the model has

// In parts of ten floats, the last one of four: seven parts.
RunConfig parts_config() {
  RunConfig config = sim_config();
  config.clip_norm = 0;  // a norm is of the whole gradient
  config.transport.part_bytes = 40;
  return config;
}

TEST(PartsTest, parts_of_any_size_come_to_the_same_bits_for_any_nodes) {
  const std::string expected = plain_hash(parts_config());
  for (const std::uint64_t bytes : {4u, 40u, 128u, 200u}) {
    for (const unsigned nodes : {1u, 3u, 7u}) {
      RunConfig config = parts_config();
      config.transport.part_bytes = bytes;
      EXPECT_EQ(run_to_end(config, nodes).parameters_hash, expected)
          << bytes << " bytes, " << nodes << " nodes";
    }
  }
}

TEST(PartsTest, the_summary_says_in_how_many_parts) {
  const Summary summary = run_to_end(parts_config(), 1);
  EXPECT_TRUE(summary.per_node[0].codec_up.ends_with(", 7 parts")) << summary.per_node[0].codec_up;
  EXPECT_TRUE(summary.per_node[0].codec_down.ends_with(", 7 parts")) << summary.per_node[0].codec_down;
  RunConfig whole = parts_config();
  whole.transport.part_bytes = 0;
  EXPECT_EQ(run_to_end(whole, 1).per_node[0].codec_up.find("parts"), std::string::npos);
}

TEST(PartsTest, every_optimizer_comes_to_the_same_bits) {
  using Kind = OptimizerOptions::Kind;
  for (const Kind kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
    RunConfig config = parts_config();
    config.optimizer.kind = kind;
    if (kind == Kind::sgd) config.optimizer.momentum = 0.9;
    config.optimizer.weight_decay = 0.01;
    EXPECT_EQ(run_to_end(config, 2).parameters_hash, plain_hash(config)) << name_of(kind);
  }
}

TEST(PartsTest, nodes_that_vanish_in_the_middle_of_a_contribution_change_no_bit) {
  const std::string expected = plain_hash(parts_config());
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimPool pool(parts_config());
    pool.add_nodes(3);
    const FaultSchedule faults(pool, seed);
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    EXPECT_EQ(summary.parameters_hash, expected);
    EXPECT_TRUE(summary.audit.passed());
    EXPECT_GE(faults.killed(), 4u);
  }
}

TEST(PartsTest, links_that_are_cut_in_the_middle_of_a_contribution_change_no_bit) {
  using std::chrono::milliseconds;
  const std::string expected = plain_hash(parts_config());
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimPool pool(parts_config());
    pool.add_node({.link = LinkShape{.cut_after_bytes = 9000}, .seed = seed + 100});
    pool.start();
    // Alone, for beside others it may be given too little for its link to be cut.
    ASSERT_TRUE(pool.run_until([&] { return pool.stays() > 1; })) << "the link was never cut";
    pool.add_node({.link = LinkShape{.delay = milliseconds(2)}, .seed = seed});
    pool.add_node({.link = LinkShape{.flip_every_bytes = 5000}, .seed = seed + 200});
    ASSERT_EQ(pool.run(), "ok");
    EXPECT_EQ(pool.coordinator().summary().parameters_hash, expected);
  }
}

TEST(PartsTest, a_coordinator_that_vanishes_goes_on_to_the_same_bits) {
  RunConfig config = parts_config();
  config.checkpoint_seconds = 1e-9;
  SimPool pool(config);
  pool.add_nodes(2);
  pool.start();
  for (const std::uint64_t batches : {30u, 90u, 150u}) {
    ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().batches >= batches; }));
    pool.restart_coordinator();
  }
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(config));
}

TEST(PartsTest, evaluations_and_checkpoints_between_steps_change_no_bit) {
  RunConfig config = parts_config();
  config.evaluate_every = 3;
  config.checkpoint_seconds = 1e-9;
  SimPool pool(config);
  pool.evaluate_on(open_dataset("synthetic", Split::test, 1).value());
  pool.add_nodes(3);
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(config));
}

TEST(PartsTest, changes_that_are_coded_in_parts_come_to_the_same_bits_whoever_comes_and_goes) {
  for (const char* codec : {"bf16", "int8"}) {
    SCOPED_TRACE(codec);
    RunConfig config = parts_config();
    config.transport.parameter_codec = parse_gradient_choice(codec).value();
    const std::string alone = run_to_end(config, 1).parameters_hash;
    EXPECT_NE(alone, plain_hash(config)) << "it is lossy";
    EXPECT_EQ(run_to_end(config, 4).parameters_hash, alone);
    SimPool pool(config);
    pool.add_nodes(3);
    const FaultSchedule faults(pool, 7);
    ASSERT_EQ(pool.run(), "ok");
    EXPECT_EQ(pool.coordinator().summary().parameters_hash, alone);
    config.checkpoint_seconds = 1e-9;
    SimPool restarted(config);
    restarted.add_nodes(2);
    restarted.start();
    ASSERT_TRUE(restarted.run_until([&] { return restarted.coordinator().status().batches >= 60; }));
    restarted.restart_coordinator();
    ASSERT_EQ(restarted.run(), "ok");
    EXPECT_EQ(restarted.coordinator().summary().parameters_hash, alone);
  }
}

TEST(PartsTest, where_a_norm_is_clipped_all_travels_in_one_piece) {
  RunConfig config = parts_config();
  config.clip_norm = 2;
  EXPECT_EQ(run_to_end(config, 2).parameters_hash, plain_hash(config));
}

TEST(PartsTest, a_part_that_is_no_number_is_leased_again) {
  const auto times = std::make_shared<std::atomic<int>>(1);
  const std::uint64_t seed = slot_seed(step_seed(parts_config().seed, 5), 3);
  SimPool pool(parts_config());
  for (int i = 0; i < 2; ++i) {
    pool.add_node({.touch = [=](std::uint64_t slot, std::span<float> contribution) -> Status {
      if (slot == seed && times->fetch_sub(1) > 0) contribution[17] = std::numeric_limits<float>::quiet_NaN();
      return {};
    }});
  }
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_LT(times->load(), 0) << "it was asked for again";
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(parts_config()));
}

// The only node, played by hand; steps have one slot.
class PartByPartTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_.start(1);
    peer_ = pool_.enrol_by_hand("hand");
    // The first step's, and the next one's ahead of it.
    ASSERT_TRUE(pool_.run_until([&] { return peer_->count(FrameType::lease) == 2; }));
    lease_ = decode_lease(peer_->take(FrameType::lease)->head, Limits{}).value();
    while (peer_->count(FrameType::parameters) > 0) (void)peer_->take(FrameType::parameters);
  }
  static RunConfig config() {
    RunConfig config = parts_config();
    config.slots = 1;
    return config;
  }
  void say(std::uint64_t first, std::int64_t count) {
    const std::vector<std::byte> floats(static_cast<std::size_t>(count) * sizeof(float));
    peer_->say(FrameType::contribution,
               Contribution{.lease_id = lease_.lease_id,
                            .block = lease_.block,
                            .samples = static_cast<std::uint64_t>(lease_.tensors[0].shape[0]),
                            .loss_sum = 1,
                            .first_float = first,
                            .tensors = {{DType::f32, Shape{count}}}},
               floats);
  }
  Parameters hear() {
    EXPECT_TRUE(pool_.run_until([&] { return peer_->count(FrameType::parameters) > 0 || peer_->closed(); }));
    const auto frame = peer_->take(FrameType::parameters);
    return frame ? decode_parameters(frame->head, Limits{}).value() : Parameters();
  }
  void expect_dropped(const std::string& reason) {
    ASSERT_TRUE(pool_.run_until([&] { return peer_->closed(); }));
    EXPECT_NE(peer_->why().find(reason), std::string::npos) << peer_->why();
  }

  SimPool pool_{config()};
  std::unique_ptr<HandPeer> peer_;
  Lease lease_;
};

TEST_F(PartByPartTest, a_part_of_the_next_version_is_there_before_the_rest_of_the_gradient_has_left) {
  EXPECT_EQ(lease_.answer.part_floats, 10u);
  for (std::uint64_t first = 0; first + 10 < kFloats; first += 10) {
    say(first, 10);
    const Parameters part = hear();
    EXPECT_EQ(part.version, 1u);
    EXPECT_EQ(part.first_float, first);
    EXPECT_EQ(part.tensors[0].shape.elements(), 10u);
    EXPECT_EQ(pool_.coordinator().status().step, 0u) << "not before it is whole";
  }
  say(60, 4);
  EXPECT_EQ(hear().first_float, 60u);
  EXPECT_EQ(pool_.coordinator().status().step, 1u);
}

TEST_F(PartByPartTest, a_run_that_is_stopped_ends_the_step_that_is_begun) {
  say(0, 10);
  EXPECT_EQ(hear().version, 1u);
  pool_.coordinator().stop("enough");
  for (std::uint64_t first = 10; first + 10 < kFloats; first += 10) say(first, 10);
  say(60, 4);
  ASSERT_EQ(pool_.run(), "ok");
  EXPECT_EQ(pool_.coordinator().summary().steps, 1u);
}

TEST_F(PartByPartTest, parts_with_a_hole_between_them_are_refused) {
  say(0, 10);
  say(20, 10);
  expect_dropped("a contribution with a hole in it");
}

TEST_F(PartByPartTest, parts_that_begin_in_the_middle_are_refused) {
  say(10, 10);
  expect_dropped("a contribution with a hole in it");
}

TEST_F(PartByPartTest, parts_that_begin_again_are_refused) {
  say(0, 10);
  say(0, 10);
  expect_dropped("a contribution with a hole in it");
}

TEST_F(PartByPartTest, parts_that_reach_past_the_model_are_refused) {
  say(0, 10);
  say(10, 60);
  expect_dropped("a contribution that is not one tensor");
}

}  // namespace
}  // namespace w5xde
