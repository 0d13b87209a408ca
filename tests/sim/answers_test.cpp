// Answers are held to what their lease asked for, and nodes to what other nodes compute.
#include <gtest/gtest.h>

#include <limits>

#include "payload/block_encoder.h"
#include "sim/sim_pool.h"
#include "support/temporary_folder.h"
#include "tensor/safetensors.h"
#include "wire/hello.h"

namespace w5xde {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Status spoil(std::uint64_t, std::span<float> contribution) {
  contribution[1] = kNaN;
  return {};
}

TEST(BrokenNodeTest, one_whose_answers_are_never_finite_does_not_end_the_run) {
  for (const Mode mode : {Mode::sync, Mode::async}) {
    RunConfig config = sim_config();
    config.mode = mode;
    config.schedule = {};
    config.steps = 1'000'000;  // its first lease is computed by a thread, which may take its time
    SimPool pool(config);
    pool.add_nodes(2);
    pool.add_node({.touch = spoil});
    pool.start();
    ASSERT_TRUE(pool.run_until([&] {
      const StatusReport status = pool.coordinator().status();
      return !status.departures.empty() && status.step > 0;
    }));
    for (const auto& departure : pool.coordinator().status().departures)
      EXPECT_NE(departure.reason.find("not finite"), std::string::npos) << departure.reason;
    pool.coordinator().stop("enough");
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    EXPECT_TRUE(summary.audit.passed());
    if (mode == Mode::sync) {
      config.steps = summary.steps;
      EXPECT_EQ(summary.parameters_hash, plain_hash(config));
    }
  }
}

TEST(BrokenNodeTest, alone_in_the_pool_it_ends_the_run_which_says_that_nobody_else_was_asked) {
  SimPool pool(sim_config());
  pool.add_node({.touch = spoil});
  const std::string outcome = pool.run();
  EXPECT_NE(outcome.find("training diverged at step 0"), std::string::npos) << outcome;
  EXPECT_NE(outcome.find("only one node was there to compute it"), std::string::npos) << outcome;
}

TEST(BrokenNodeTest, departures_of_nodes_that_cannot_compute_end_the_run_only_when_two_agree) {
  RunConfig config = sim_config();
  config.schedule = {};
  config.steps = 1'000'000;  // the run must not end before both have had a lease
  SimPool pool(config);
  pool.add_nodes(1);
  pool.start(1);
  const auto leaves = [&](const std::string& name, const std::string& reason) {
    auto peer = pool.enrol_by_hand(name);
    ASSERT_TRUE(pool.run_until([&] { return peer->count(FrameType::lease) > 0; }));
    peer->connection().close(invalid(reason));
    ASSERT_TRUE(pool.run_until([&] { return peer->closed(); }));
  };
  leaves("mallory", "no such kernel");
  leaves("mallory", "no such kernel");  // the same node again
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().step > 0; }));
  pool.coordinator().stop("enough");
  ASSERT_EQ(pool.run(), "ok");
  config.steps = pool.coordinator().summary().steps;
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(config));
}

// The numbers of a whole step's samples are more than a frame's head may have.
TEST(LargeLeaseTest, a_step_that_does_not_fit_in_one_lease_goes_out_in_several) {
  RunConfig config = sim_config();
  config.data = "random:2,2,200000";
  config.batch = 16'384;
  config.slots = 32;
  config.steps = 3;
  config.transport.sample_cache = SampleCaching::on;
  SimPool pool(config);
  pool.add_nodes(1);
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.stays(), 1u) << "it was dropped";
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(config));
}

// An honest node, and one that is played by hand.
class AnswerTest : public testing::Test {
 protected:
  void start() {
    pool_.emplace(config_);
    pool_->add_nodes(1);
    pool_->start(1);
    peer_ = pool_->enrol_by_hand("mallory");
    next_lease();
  }
  void next_lease() {
    ASSERT_TRUE(pool_->run_until([&] { return peer_->count(FrameType::lease) > 0; }));
    lease_ = decode_lease(peer_->take(FrameType::lease)->head, Limits{}).value();
  }
  Contribution answer() const {
    return {.lease_id = lease_.lease_id,
            .step = lease_.step,
            .version = lease_.version,
            .block = lease_.block,
            .samples = lease_.samples(),
            .loss_sum = 1,
            .tensors = {{DType::f32, Shape{64}}}};
  }
  void say(const Contribution& contribution) {
    peer_->say(FrameType::contribution, contribution, std::as_bytes(std::span(floats_)));
  }
  void say_coded(std::string_view codec) {
    const BlockShape shape{FakeEngine().description().parameters, FakeEngine().description().floats()};
    const Formed formed = BlockEncoder(shape, 0).encode(floats_, parse_gradient_codec(codec).value());
    Contribution contribution = answer();
    contribution.coding = formed.coding;
    peer_->say(FrameType::contribution, contribution, formed.bytes);
  }
  void expect_dropped(const std::string& reason) {
    ASSERT_TRUE(pool_->run_until([&] { return peer_->closed(); }));
    EXPECT_NE(peer_->why().find(reason), std::string::npos) << peer_->why();
    ASSERT_EQ(pool_->run(), "ok");
    if (config_.mode == Mode::sync && config_.transport.gradient_codec == GradientChoice()) {
      EXPECT_EQ(pool_->coordinator().summary().parameters_hash, plain_hash(sim_config()));
    }
  }

  RunConfig config_ = sim_config();
  std::optional<SimPool> pool_;
  std::unique_ptr<HandPeer> peer_;
  Lease lease_;
  std::vector<float> floats_ = std::vector<float>(64, 0.5F);
};

TEST_F(AnswerTest, that_is_not_finite_where_another_node_s_is_drops_its_sender) {
  start();
  floats_[3] = kNaN;
  say(answer());
  expect_dropped("not finite");
}

TEST_F(AnswerTest, in_another_coding_than_its_lease_asks_for_drops_its_sender) {
  for (const char* codec : {"fp16", "int8", "onebit", "topk:0.1", "powersgd:1"}) {
    SCOPED_TRACE(codec);
    start();
    say_coded(codec);
    expect_dropped("in another coding than its lease asks for");
  }
}

TEST_F(AnswerTest, of_another_rank_than_its_lease_asks_for_drops_its_sender) {
  config_.transport.gradient_codec = parse_gradient_choice("powersgd:1").value();
  start();
  say_coded("powersgd:2");
  expect_dropped("in another coding than its lease asks for");
}

TEST_F(AnswerTest, of_a_rank_that_costs_more_than_the_model_is_refused_before_it_is_decoded) {
  config_.transport.gradient_codec = parse_gradient_choice("powersgd:1").value();
  start();
  Contribution contribution = answer();
  contribution.coding = {.form = Form::gradient,
                         .gradient_kind = static_cast<std::uint8_t>(GradientKind::powersgd),
                         .rank = 65'535,
                         .bytes = floats_.size() * sizeof(float)};
  say(contribution);
  expect_dropped("in another coding than its lease asks for");
}

TEST_F(AnswerTest, in_parts_where_its_lease_asks_for_one_piece_drops_its_sender) {
  start();
  Contribution part = answer();
  part.tensors = {{DType::f32, Shape{32}}};
  peer_->say(FrameType::contribution, part, std::as_bytes(std::span(floats_)).first(32 * sizeof(float)));
  expect_dropped("in another coding than its lease asks for");
}

TEST_F(AnswerTest, with_another_step_or_version_than_its_lease_s_drops_its_sender) {
  const auto spoils = {+[](Contribution& answer) { ++answer.step; },
                       +[](Contribution& answer) { ++answer.version; }};
  for (const auto& spoil : spoils) {
    start();
    Contribution contribution = answer();
    spoil(contribution);
    say(contribution);
    expect_dropped("a contribution that is no answer to its lease");
  }
}

// A checkpoint wants what its codec has still to say.
TEST_F(AnswerTest, of_a_codec_with_feedback_that_is_then_kept_back_drops_its_sender) {
  config_.transport.gradient_codec = parse_gradient_choice("topk:0.1").value();
  config_.checkpoint_seconds = 1e-9;
  start();
  say_coded("topk:0.1");
  ASSERT_TRUE(pool_->run_until([&] { return peer_->count(FrameType::feedback) > 0; }));
  expect_dropped("did not send its error feedback");
  EXPECT_EQ(pool_->coordinator().summary().audit.feedback_lost, 1u);
}

TEST_F(AnswerTest, of_a_codec_with_feedback_is_told_whether_it_counts) {
  config_.transport.gradient_codec = parse_gradient_choice("topk:0.1").value();
  config_.steps = 1'000'000;
  start();
  const auto judged = [&] {
    say_coded("topk:0.1");
    EXPECT_TRUE(pool_->run_until([&] { return peer_->count(FrameType::verdict) > 0; }));
    const Verdict verdict = decode_verdict(peer_->take(FrameType::verdict)->head).value();
    EXPECT_EQ(verdict.lease_id, lease_.lease_id);
    return verdict.counted;
  };
  // The honest node may be quicker at times.
  while (!judged()) ASSERT_NO_FATAL_FAILURE(next_lease());
  next_lease();
  ASSERT_TRUE(pool_->run_until([&] { return pool_->coordinator().status().step > lease_.step; }));
  EXPECT_FALSE(judged()) << "the step was committed without it";
}

TEST_F(AnswerTest, to_an_evaluation_that_does_not_come_lets_no_contributions_pile_up_in_async) {
  config_.mode = Mode::async;
  config_.steps = 1'000'000;
  config_.evaluate_every = 20;
  pool_.emplace(config_);
  pool_->evaluate_on(open_dataset("synthetic", Split::test, 1).value());
  pool_->add_nodes(1);
  pool_->start(1);
  peer_ = pool_->enrol_by_hand("mallory");
  do {
    next_lease();
    if (lease_.work == Work::train) say(answer());
  } while (lease_.work == Work::train);
  std::uint64_t waiting_most = 0;
  int turns = 0;
  ASSERT_TRUE(pool_->run_until([&] {
    const Summary summary = pool_->coordinator().summary();
    std::uint64_t answered = 0;
    for (const NodeSummary& node : summary.per_node) answered += node.batches;
    waiting_most = std::max(waiting_most, answered - summary.batches);
    return ++turns == 200;
  }));
  EXPECT_LE(waiting_most, 4 * 2 * config_.slots) << "a few leases of each node";
}

TEST_F(AnswerTest, in_async_with_a_version_that_was_never_sent_drops_its_sender) {
  config_.mode = Mode::async;
  for (const bool newer : {true, false}) {
    SCOPED_TRACE(newer);
    start();
    // A lease that names a version which has one before it.
    while (lease_.version == 0) {
      say(answer());
      ASSERT_NO_FATAL_FAILURE(next_lease());
    }
    Contribution contribution = answer();
    contribution.version = newer ? 1'000'000 : lease_.version - 1;
    say(contribution);
    expect_dropped("a contribution that is no answer to its lease");
  }
}

// What the data brings must not be blamed on the learning rate.
TEST(BrokenDataTest, a_sample_that_is_not_finite_ends_the_run_with_its_number) {
  const TemporaryFolder folder;
  for (const Mode mode : {Mode::sync, Mode::async}) {
    std::vector<float> inputs(300 * 10, 0.5F), targets(300, 1);
    inputs[77 * 10 + 3] = kNaN;
    const auto view = [](const std::vector<float>& floats, const Shape& shape) {
      return TensorView(std::as_bytes(std::span(floats)), DType::f32, shape);
    };
    const std::vector<NamedTensor> tensors = {{"inputs", view(inputs, {300, 10})},
                                              {"targets", view(targets, {300})}};
    ASSERT_TRUE(write_safetensors(folder / "data", tensors, {}).ok());
    RunConfig config = sim_config();
    config.mode = mode;
    config.data = "safetensors:" + (folder / "data").string();
    SimPool pool(config);
    pool.add_nodes(2);
    const std::string outcome = pool.run();
    EXPECT_TRUE(outcome.starts_with("invalid: sample 77 of " + config.data + " has NaN")) << outcome;
    EXPECT_NE(outcome.find("in its inputs"), std::string::npos) << outcome;
  }
}

}  // namespace
}  // namespace w5xde
