// What broken and hostile nodes do to a pool: nothing, but to themselves.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "learn/engine_library.h"
#include "learn/seeds.h"
#include "sim/sim_pool.h"
#include "support/full_disk.h"
#include "wire/hello.h"

namespace w5xde {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Spoils the contribution of slot 3 of step 5 `times` times. Nodes compute their first leases on threads.
FakeEngine::Touch spoiling(const RunConfig& config, std::shared_ptr<std::atomic<int>> times) {
  const std::uint64_t seed = slot_seed(step_seed(config.seed, 5), 3);
  return [seed, times](std::uint64_t slot, std::span<float> contribution) -> Status {
    if (slot == seed && times->fetch_sub(1) > 0) contribution[1] = kNaN;
    return {};
  };
}

TEST(FaultsTest, a_slot_that_comes_back_as_no_number_once_is_leased_again) {
  const auto times = std::make_shared<std::atomic<int>>(1);
  SimPool pool(sim_config());
  for (int i = 0; i < 2; ++i) pool.add_node({.touch = spoiling(sim_config(), times)});
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_LT(times->load(), 0) << "it was asked for again";
  const Summary summary = pool.coordinator().summary();
  EXPECT_EQ(summary.parameters_hash, plain_hash(sim_config()));
  EXPECT_TRUE(summary.audit.passed());
  EXPECT_GT(summary.audit.slots_leased_again, 0u);
}

TEST(FaultsTest, a_slot_that_is_no_number_whoever_computes_it_ends_the_run) {
  for (const Mode mode : {Mode::sync, Mode::async}) {
    RunConfig config = sim_config();
    config.mode = mode;
    const auto times = std::make_shared<std::atomic<int>>(1 << 30);
    SimPool pool(config);
    for (int i = 0; i < 2; ++i) pool.add_node({.touch = spoiling(config, times)});
    const std::string outcome = pool.run();
    EXPECT_TRUE(outcome.starts_with("diverged: training diverged at step 5: the gradient of slots"))
        << outcome;
    EXPECT_NE(outcome.find("Lower --learning-rate"), std::string::npos);
    EXPECT_LE(pool.coordinator().summary().steps, mode == Mode::sync ? 5u : 180u);
  }
}

TEST(FaultsTest, an_engine_that_refuses_a_slot_ends_the_run_with_its_words) {
  SimPool pool(sim_config());
  for (int i = 0; i < 2; ++i) {
    pool.add_node(
        {.touch = [](std::uint64_t, std::span<float>) -> Status { return invalid("nine classes"); }});
  }
  EXPECT_EQ(pool.run(), "invalid: nine classes");
}

TEST(FaultsTest, a_disk_without_room_for_a_checkpoint_ends_the_run_with_advice) {
  SimPool pool(sim_config());
  pool.add_nodes(2);
  pool.start();
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= 3; }));
  const FullDisk full(100);
  const std::string outcome = pool.run();
  EXPECT_TRUE(outcome.starts_with("system: writing a checkpoint; free some space")) << outcome;
}

TEST(FaultsTest, a_checkpoint_that_cannot_be_written_is_tried_again) {
  SimPool pool(sim_config());
  pool.add_nodes(2);
  pool.start();
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= 3; }));
  std::optional<FullDisk> full(100);
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().phase == "retrying a checkpoint"; }));
  full.reset();
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(sim_config()));
}

// Two honest nodes, and a third that is played by hand; training begins when all three are in, so that every
// step needs what the third is asked for.
class HostileNodeTest : public testing::Test {
 protected:
  void start() {
    pool_.add_nodes(2);
    pool_.start(1);
    peer_ = pool_.enrol_by_hand("mallory");
    ASSERT_TRUE(pool_.run_until([&] { return peer_->count(FrameType::lease) > 0; }));
    lease_ = decode_lease(peer_->take(FrameType::lease)->head, Limits{}).value();
    ASSERT_EQ(lease_.step, 0u);
  }
  // An answer that would be taken, were it all there was.
  Contribution answer() const {
    const auto samples = static_cast<std::uint64_t>(lease_.tensors[0].shape[0]);
    return {.lease_id = lease_.lease_id,
            .block = lease_.block,
            .samples = samples,
            .loss_sum = 1,
            .tensors = {{DType::f32, Shape{64}}}};
  }
  // It is dropped for that reason, and the others go on as if it had never been there.
  void expect_dropped(const std::string& reason) {
    ASSERT_TRUE(pool_.run_until([&] { return peer_->closed(); }));
    EXPECT_NE(peer_->why().find(reason), std::string::npos) << peer_->why();
    expect_others_untouched(reason);
  }
  void expect_others_untouched(const std::string& reason) {
    ASSERT_EQ(pool_.run(), "ok");
    EXPECT_EQ(pool_.stays(), 2u) << "an honest node was dropped";
    const Summary summary = pool_.coordinator().summary();
    EXPECT_EQ(summary.parameters_hash, plain_hash(sim_config()));
    EXPECT_TRUE(summary.audit.passed());
    const auto departures = pool_.coordinator().status().departures;
    ASSERT_EQ(departures.size(), 1u);
    EXPECT_EQ(departures[0].name, "mallory");
    EXPECT_NE(departures[0].reason.find(reason), std::string::npos) << departures[0].reason;
  }

  const std::vector<std::byte> floats_ = std::vector<std::byte>(64 * sizeof(float));
  SimPool pool_{sim_config()};
  std::unique_ptr<HandPeer> peer_;
  Lease lease_;
};

TEST_F(HostileNodeTest, a_contribution_to_a_lease_of_somebody_else) {
  start();
  // The first step is shared out among three: lease 1 or 2 is not ours.
  Contribution theirs = answer();
  theirs.lease_id = lease_.lease_id == 1 ? 2 : 1;
  peer_->say(FrameType::contribution, theirs, floats_);
  expect_dropped("a contribution to a lease that it does not have");
}

TEST_F(HostileNodeTest, one_that_says_that_the_run_cannot_be_computed) {
  start();
  peer_->connection().close(invalid("nine classes"));
  expect_others_untouched("nine classes");
}

TEST_F(HostileNodeTest, the_same_contribution_twice) {
  start();
  std::vector<float> spoilt(64, kNaN);  // the first is not counted either
  peer_->say(FrameType::contribution, answer(), std::as_bytes(std::span(spoilt)));
  peer_->say(FrameType::contribution, answer(), std::as_bytes(std::span(spoilt)));
  expect_dropped("a contribution to a lease that it does not have");
}

TEST_F(HostileNodeTest, a_contribution_of_another_size) {
  start();
  Contribution large = answer();
  large.tensors = {{DType::f32, Shape{65}}};
  peer_->say(FrameType::contribution, large, std::vector<std::byte>(65 * 4));
  expect_dropped("a contribution that is not one tensor of 64 f32");
}

TEST_F(HostileNodeTest, a_contribution_of_another_dtype) {
  start();
  Contribution integers = answer();
  integers.tensors = {{DType::i32, Shape{64}}};
  peer_->say(FrameType::contribution, integers, floats_);
  expect_dropped("a contribution that is not one tensor of 64 f32");
}

TEST_F(HostileNodeTest, a_contribution_that_describes_floats_and_has_none) {
  start();
  peer_->say(FrameType::contribution, answer());
  expect_dropped("a contribution without its floats");
}

TEST_F(HostileNodeTest, an_evaluation_as_the_answer_to_a_lease_to_train) {
  start();
  Contribution evaluation = answer();
  evaluation.tensors = {};
  peer_->say(FrameType::contribution, evaluation);
  expect_dropped("a contribution that is no answer to its lease");
}

TEST_F(HostileNodeTest, more_samples_than_were_leased) {
  start();
  Contribution boasting = answer();
  boasting.samples += 1;
  peer_->say(FrameType::contribution, boasting, floats_);
  expect_dropped("a contribution that is no answer to its lease");
}

TEST_F(HostileNodeTest, other_slots_than_were_leased) {
  start();
  Contribution elsewhere = answer();
  elsewhere.block = {lease_.block.first_slot == 0 ? 4u : 0u, 2};
  peer_->say(FrameType::contribution, elsewhere, floats_);
  expect_dropped("a contribution that is no answer to its lease");
}

TEST_F(HostileNodeTest, garbage_in_the_middle_of_its_stay) {
  pool_.add_nodes(2);
  pool_.start(1);
  const auto stream = pool_.connect_stream();
  const auto say = [&](std::vector<std::byte> bytes) {
    const iovec part{bytes.data(), bytes.size()};
    ASSERT_TRUE(stream->write({&part, 1}).ok());
  };
  Head hello, ready;
  encode(Hello{.name = "mallory"}, hello);
  encode(Ready{.model_fingerprint = fingerprint_of(FakeEngine().description())}, ready);
  say(bytes_of_frame({.type = FrameType::hello, .head = hello}));
  say(bytes_of_frame({.type = FrameType::ready, .head = ready}));
  ASSERT_TRUE(pool_.run_until([&] { return pool_.coordinator().status().phase == "training"; }));
  std::vector<std::byte> garbage;
  for (std::uint64_t i = 0; i < 1000; ++i) garbage.push_back(static_cast<std::byte>(mix(i)));
  say(garbage);
  expect_others_untouched("not a w5xde frame");
}

TEST_F(HostileNodeTest, frames_that_only_coordinators_send) {
  start();
  peer_->say(FrameType::lease, lease_);
  expect_dropped("a node does not send lease frames");
}

TEST_F(HostileNodeTest, a_second_ready) {
  start();
  peer_->say(FrameType::ready, Ready{});
  expect_dropped("a ready that nobody waits for");
}

TEST_F(HostileNodeTest, a_second_hello) {
  start();
  peer_->say(FrameType::hello, Hello{.name = "mallory, again"});
  expect_dropped("a second hello");
}

TEST_F(HostileNodeTest, a_void_answer_to_a_lease_that_stands_is_a_fault_of_its_sender) {
  start();
  peer_->say(FrameType::contribution, Contribution{.lease_id = lease_.lease_id, .block = lease_.block});
  expect_dropped("nothing in answer to a lease that stands");
}

// The honest nodes answer the second holder's lease of the same slots: the step goes on without this one.
TEST_F(HostileNodeTest, a_void_answer_to_a_lease_whose_step_was_committed_without_it_is_none) {
  start();
  ASSERT_TRUE(pool_.run_until([&] { return pool_.coordinator().status().step >= 1; }));
  peer_->say(FrameType::contribution, Contribution{.lease_id = lease_.lease_id, .block = lease_.block});
  peer_->say(FrameType::hello, Hello{.name = "the void answer was taken"});
  expect_dropped("a second hello");
}

TEST(StrangerTest, who_says_no_hello_or_builds_another_model_does_not_come_in) {
  SimPool pool(sim_config());
  pool.add_nodes(1);
  pool.start(1);
  auto rude = pool.connect_by_hand();
  rude->say(FrameType::contribution, Contribution{});
  auto other = pool.connect_by_hand();
  other->say(FrameType::hello, Hello{.name = "other"});
  ASSERT_TRUE(pool.run_until([&] { return other->count(FrameType::offer) > 0; }));
  other->say(FrameType::ready, Ready{.model_fingerprint = 1});
  ASSERT_TRUE(pool.run_until([&] { return other->closed() && rude->closed(); }));
  EXPECT_NE(rude->why().find("a contribution before ready"), std::string::npos) << rude->why();
  EXPECT_NE(other->why().find("other made another model of 'fake'"), std::string::npos) << other->why();
  EXPECT_EQ(pool.coordinator().status().phase, "waiting for nodes");
  pool.add_nodes(1);
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(sim_config()));
}

TEST(StrangerTest, one_address_cannot_take_all_places) {
  SimPool pool(sim_config());
  pool.start(1);
  std::vector<std::unique_ptr<Stream>> strangers;
  for (std::uint64_t i = 0; i < Limits{}.strangers_per_address_max; ++i)
    strangers.push_back(pool.connect_stream());
  const auto is_open = [&](Stream& stream) {
    bool readable = false;
    stream.when_readable([&] { readable = true; });
    EXPECT_TRUE(pool.run_until([&] { return readable; }));
    std::byte byte{};
    const iovec part{&byte, 1};
    return stream.read({&part, 1}).ok();
  };
  for (auto& stranger : strangers) ASSERT_TRUE(is_open(*stranger)) << "a hello was due";
  EXPECT_FALSE(is_open(*pool.connect_stream()));
  // Who goes makes room.
  strangers.front()->close();
  ASSERT_TRUE(pool.run_until([&] { return is_open(*pool.connect_stream()); }));
}

TEST(StrangerTest, a_node_s_feedback_that_nobody_asked_for_is_refused) {
  SimPool pool(sim_config());
  pool.start(2);
  auto peer = pool.enrol_by_hand("mallory");
  const std::vector<std::byte> floats(FakeEngine().description().parameters->floats() * sizeof(float));
  peer->say(FrameType::feedback,
            Feedback{.leaving = true,
                     .tensors = {{DType::f32, Shape{static_cast<std::int64_t>(floats.size() / 4)}}}},
            floats);
  ASSERT_TRUE(pool.run_until([&] { return peer->closed(); }));
  EXPECT_NE(peer->why().find("feedback that nobody asked for"), std::string::npos) << peer->why();
}

TEST(ObserverTest, an_observer_is_told_who_is_in_and_who_has_left_and_why) {
  SimPool pool(sim_config());
  pool.add_nodes(2);
  pool.start(2);
  auto observer = pool.connect_by_hand();
  observer->say(FrameType::hello, Hello{.name = "watching", .role = "observer"});
  const auto ask = [&] {
    observer->say({.type = FrameType::status});
    EXPECT_TRUE(pool.run_until([&] { return observer->count(FrameType::status) > 0; }));
    return decode_status(observer->take(FrameType::status)->head, Limits{}).value();
  };
  const StatusReport waiting = ask();
  EXPECT_EQ(waiting.phase, "waiting for nodes");
  EXPECT_EQ(waiting.seconds, 0) << "time in which nobody can train does not count";
  EXPECT_EQ(observer->count(FrameType::offer), 0u) << "an observer gets no work";
  auto leaving = pool.enrol_by_hand("passer-by");
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().nodes.size() == 3; }));
  leaving->connection().close(disconnected("closing time"));
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().nodes.size() == 2; }));

  const StatusReport report = ask();
  EXPECT_EQ(report.run, "sim");
  EXPECT_EQ(report.mode, "sync");
  EXPECT_EQ(report.steps_total, 30u);
  ASSERT_EQ(report.nodes.size(), 2u);
  EXPECT_EQ(report.nodes[0].engine, "fake 1");
  EXPECT_TRUE(report.nodes[0].peer.starts_with("127.0.0.1:")) << report.nodes[0].peer;
  ASSERT_EQ(report.departures.size(), 1u);
  EXPECT_EQ(report.departures[0].name, "passer-by");
  EXPECT_EQ(report.departures[0].reason, "closing time");
}

}  // namespace
}  // namespace w5xde
