// Pools whose nodes are on the coordinator's machine and share memory with it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "learn/seeds.h"
#include "sim/fault_schedule.h"
#include "sim/sim_pool.h"

namespace w5xde {
namespace {

constexpr std::string_view kShared = "shared memory";

Summary run_sharing(const RunConfig& config, unsigned nodes) {
  SimPool pool(config);
  pool.share_memory();
  pool.add_nodes(nodes);
  EXPECT_EQ(pool.run(), "ok");
  Summary summary = pool.coordinator().summary();
  EXPECT_TRUE(summary.audit.passed());
  return summary;
}

TEST(SharedMemoryTest, any_nodes_come_to_the_same_bits_as_over_sockets) {
  const std::string expected = plain_hash(sim_config());
  for (const unsigned nodes : {1u, 3u, 7u}) {
    const Summary summary = run_sharing(sim_config(), nodes);
    EXPECT_EQ(summary.parameters_hash, expected) << nodes;
    for (const NodeSummary& node : summary.per_node) {
      EXPECT_EQ(node.codec_up, kShared);
      EXPECT_EQ(node.codec_down, kShared);
    }
  }
  EXPECT_NE(run_to_end(sim_config(), 1).per_node[0].codec_up, kShared) << "so small a model crosses sockets";
}

TEST(SharedMemoryTest, off_is_off) {
  RunConfig config = sim_config();
  config.transport.shared_memory = MemorySharing::off;
  const Summary summary = run_sharing(config, 2);
  EXPECT_EQ(summary.parameters_hash, plain_hash(config));
  EXPECT_NE(summary.per_node[0].codec_up, kShared);
  EXPECT_NE(summary.per_node[0].codec_down, kShared);
}

TEST(SharedMemoryTest, every_optimizer_clipped_or_not_comes_to_the_same_bits) {
  using Kind = OptimizerOptions::Kind;
  for (const Kind kind : {Kind::sgd, Kind::adam, Kind::adamw}) {
    for (const double clip_norm : {0.0, 2.0}) {
      for (const double momentum : {0.0, 0.9}) {
        RunConfig config = sim_config();
        config.clip_norm = clip_norm;
        config.optimizer.kind = kind;
        config.optimizer.momentum = kind == Kind::sgd ? momentum : 0;
        EXPECT_EQ(run_sharing(config, 2).parameters_hash, plain_hash(config)) << name_of(kind);
      }
    }
  }
}

TEST(SharedMemoryTest, nodes_that_vanish_change_no_bit) {
  const std::string expected = plain_hash(sim_config());
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimPool pool(sim_config());
    pool.share_memory();
    pool.add_nodes(3);
    const FaultSchedule faults(pool, seed);
    ASSERT_EQ(pool.run(), "ok");
    EXPECT_EQ(pool.coordinator().summary().parameters_hash, expected);
    EXPECT_TRUE(pool.coordinator().summary().audit.passed());
    EXPECT_GE(faults.killed(), 4u);
  }
}

TEST(SharedMemoryTest, a_coordinator_that_vanishes_goes_on_to_the_same_bits) {
  RunConfig config = sim_config();
  config.checkpoint_seconds = 1e-9;
  SimPool pool(config);
  pool.share_memory();
  pool.add_nodes(2);
  pool.start();
  for (const std::uint64_t batches : {30u, 90u, 150u}) {
    ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().batches >= batches; }));
    pool.restart_coordinator();
  }
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(config));
}

TEST(SharedMemoryTest, evaluations_and_checkpoints_between_steps_change_no_bit) {
  RunConfig config = sim_config();
  config.evaluate_every = 3;
  config.checkpoint_seconds = 1e-9;
  SimPool pool(config);
  pool.share_memory();
  pool.evaluate_on(open_dataset("synthetic", Split::test, 1).value());
  pool.add_nodes(3);
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(config));
}

TEST(SharedMemoryTest, what_a_lossy_codec_codes_crosses_the_socket_and_the_rest_does_not) {
  for (const char* codec : {"bf16", "topk:0.1"}) {
    RunConfig config = sim_config();
    config.transport.gradient_codec = parse_gradient_choice(codec).value();
    const Summary up = run_sharing(config, 1);
    EXPECT_EQ(up.parameters_hash, run_to_end(config, 1).parameters_hash) << codec;
    EXPECT_NE(up.per_node[0].codec_up, kShared);
    EXPECT_EQ(up.per_node[0].codec_down, kShared);
    config = sim_config();
    config.transport.parameter_codec = parse_gradient_choice(codec).value();
    const Summary down = run_sharing(config, 3);
    EXPECT_EQ(down.parameters_hash, run_to_end(config, 1).parameters_hash) << codec;
    EXPECT_EQ(down.per_node[0].codec_up, kShared);
    EXPECT_NE(down.per_node[0].codec_down, kShared);
  }
}

TEST(SharedMemoryTest, in_async_all_is_applied_once) {
  RunConfig config = sim_config();
  config.mode = Mode::async;
  const Summary summary = run_sharing(config, 4);
  EXPECT_EQ(summary.samples, run_to_end(config, 4).samples);
  // One node alone always has the newest version: there is one order of things.
  EXPECT_EQ(run_sharing(config, 1).parameters_hash, run_to_end(config, 1).parameters_hash);
}

TEST(SharedMemoryTest, a_gradient_that_is_no_number_is_leased_again) {
  const auto times = std::make_shared<std::atomic<int>>(1);
  const std::uint64_t seed = slot_seed(step_seed(sim_config().seed, 5), 3);
  SimPool pool(sim_config());
  pool.share_memory();
  for (int i = 0; i < 2; ++i) {
    pool.add_node({.touch = [=](std::uint64_t slot, std::span<float> contribution) -> Status {
      if (slot == seed && times->fetch_sub(1) > 0) contribution[17] = std::numeric_limits<float>::quiet_NaN();
      return {};
    }});
  }
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_LT(times->load(), 0) << "it was asked for again";
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(sim_config()));
}

// One node is played by hand, beside a real one.
class SharedByHandTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_.share_memory();
    pool_.start(1);
    peer_ = pool_.connect_by_hand();
    peer_->say(FrameType::hello, Hello{.name = "hand"});
    ASSERT_TRUE(pool_.run_until([&] { return peer_->count(FrameType::offer) > 0; }));
    const Offer offer = decode_offer(peer_->take(FrameType::offer)->head, Limits{}).value();
    peer_->say(FrameType::ready, Ready{.model_fingerprint = offer.model_fingerprint,
                                       .engine = "hand",
                                       .memory_token = token(SharedProbe::answer_to(offer.memory_probe))});
    ASSERT_TRUE(pool_.run_until([&] { return peer_->count(FrameType::lease) > 0; }));
    lease_ = decode_lease(peer_->take(FrameType::lease)->head, Limits{}).value();
  }
  virtual std::string token(const std::string& answer) const { return answer; }

  Contribution answer() const {
    return {.lease_id = lease_.lease_id,
            .block = lease_.block,
            .samples = static_cast<std::uint64_t>(lease_.tensors[0].shape[0]),
            .loss_sum = 1,
            .coding = {.form = Form::shared},
            .tensors = {{DType::f32, Shape{64}}}};
  }

  SimPool pool_{sim_config()};
  std::unique_ptr<HandPeer> peer_;
  Lease lease_;
};

TEST_F(SharedByHandTest, what_a_node_writes_after_it_is_gone_is_in_no_sum) {
  ASSERT_EQ(lease_.answer.form, Form::shared);
  const auto block = SharedBlock::open(lease_.answer.memory, SharedBlock::Access::write).value();
  peer_.reset();
  pool_.add_nodes(1);
  // It wakes up late, and does not know that nobody waits for it.
  pool_.on_turn = [&] { std::memset(block->data(), 0x7f, block->address().bytes); };
  ASSERT_EQ(pool_.run(), "ok");
  EXPECT_EQ(pool_.coordinator().summary().parameters_hash, plain_hash(sim_config()));
  EXPECT_FALSE(block->is_used());
}

TEST_F(SharedByHandTest, an_answer_in_memory_with_a_payload_is_refused) {
  const std::vector<std::byte> floats(64 * sizeof(float));
  peer_->say(FrameType::contribution, answer(), floats);
  ASSERT_TRUE(pool_.run_until([&] { return peer_->closed(); }));
  EXPECT_NE(peer_->why().find("a payload beside shared memory"), std::string::npos) << peer_->why();
}

TEST_F(SharedByHandTest, an_answer_is_counted_once) {
  peer_->say(FrameType::contribution, answer());
  peer_->say(FrameType::contribution, answer());
  ASSERT_TRUE(pool_.run_until([&] { return peer_->closed(); }));
  EXPECT_NE(peer_->why().find("a lease that it does not have"), std::string::npos) << peer_->why();
}

TEST_F(SharedByHandTest, a_part_of_an_answer_is_refused) {
  Contribution part = answer();
  part.first_float = 1;
  part.tensors = {{DType::f32, Shape{63}}};
  peer_->say(FrameType::contribution, part);
  ASSERT_TRUE(pool_.run_until([&] { return peer_->closed(); }));
  EXPECT_NE(peer_->why().find("a part of a contribution"), std::string::npos) << peer_->why();
}

TEST_F(SharedByHandTest, a_node_that_will_not_compute_keeps_its_memory_to_itself) {
  const auto block = SharedBlock::open(lease_.answer.memory, SharedBlock::Access::write).value();
  Contribution nothing = answer();
  nothing.samples = 0;
  nothing.loss_sum = 0;
  nothing.tensors.clear();
  nothing.coding = {};
  pool_.add_nodes(1);
  pool_.on_turn = [&] { std::memset(block->data(), 0x7f, block->address().bytes); };
  peer_->say(FrameType::contribution, nothing);
  ASSERT_TRUE(pool_.run_until([&] { return peer_->closed(); }));
  EXPECT_NE(peer_->why().find("nothing in answer to a lease that stands"), std::string::npos) << peer_->why();
  peer_.reset();
  ASSERT_EQ(pool_.run(), "ok");
  EXPECT_EQ(pool_.coordinator().summary().parameters_hash, plain_hash(sim_config()));
  EXPECT_FALSE(block->is_used());
}

class NotSharedByHandTest : public SharedByHandTest {
  std::string token(const std::string& answer) const override { return std::string(answer.size(), '0'); }
};

TEST_F(NotSharedByHandTest, who_does_not_find_the_probe_is_sent_all_of_it) {
  EXPECT_EQ(lease_.answer.form, Form::direct);
  ASSERT_TRUE(pool_.run_until([&] { return peer_->count(FrameType::parameters) > 0; }));
  EXPECT_EQ(peer_->take(FrameType::parameters)->payload.size(), 64 * sizeof(float));
  peer_->say(FrameType::contribution, answer());
  ASSERT_TRUE(pool_.run_until([&] { return peer_->closed(); }));
  EXPECT_NE(peer_->why().find("another coding than its lease asks for"), std::string::npos) << peer_->why();
}

}  // namespace
}  // namespace w5xde
