#include "node/node.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <limits>

#include "base/file.h"
#include "base/hash.h"
#include "node/machine.h"
#include "support/node_world.h"
#include "wire/hello.h"

namespace w5xde {
namespace {

class NodeTest : public testing::Test {
 protected:
  NodeWorld world_;
};

TEST_F(NodeTest, it_says_hello_and_is_ready_when_it_has_built_the_model_that_is_offered) {
  world_.start();
  const auto hello = world_.hear(FrameType::hello);
  ASSERT_TRUE(hello.has_value());
  const auto decoded = decode_hello(hello->head, Limits::stranger()).value();
  EXPECT_EQ(decoded.name, "desk");
  EXPECT_EQ(decoded.role, "node");
  world_.peer->say(FrameType::hello, Hello{.role = "coordinator"});
  world_.peer->say(FrameType::offer, world_.offer());
  const auto frame = world_.hear(FrameType::ready);
  ASSERT_TRUE(frame.has_value()) << world_.peer->why();
  const Ready ready = decode_ready(frame->head, Limits{}).value();
  EXPECT_EQ(ready.model_fingerprint, world_.offer().model_fingerprint);
  EXPECT_EQ(ready.engine, "fake 1");
  EXPECT_EQ(ready.processor, processor_name());
}

TEST_F(NodeTest, its_engine_computes_in_what_the_run_offers_and_it_says_so) {
  world_.start();
  Offer offer = world_.offer();
  offer.compute = DType::bf16;
  world_.peer->say(FrameType::hello, Hello{.role = "coordinator"});
  world_.peer->say(FrameType::offer, offer);
  const auto frame = world_.hear(FrameType::ready);
  ASSERT_TRUE(frame.has_value()) << world_.peer->why();
  EXPECT_EQ(decode_ready(frame->head, Limits{}).value().compute, DType::bf16);
  EXPECT_EQ(world_.model.compute, DType::bf16);
}

TEST_F(NodeTest, it_says_for_how_many_like_it_its_machine_has_cores) {
  world_.options.machine = {.id = "cellar", .cores = 7};
  world_.options.threads = 2;
  world_.start();
  Offer offer = world_.offer();
  offer.threads = 2;
  world_.peer->say(FrameType::hello, Hello{.role = "coordinator"});
  world_.peer->say(FrameType::offer, offer);
  const auto frame = world_.hear(FrameType::ready);
  ASSERT_TRUE(frame.has_value()) << world_.peer->why();
  const Ready ready = decode_ready(frame->head, Limits{}).value();
  EXPECT_EQ(ready.machine, "cellar");
  EXPECT_EQ(ready.lanes, 3u);
}

TEST_F(NodeTest, a_lease_is_answered_with_its_slots_sum) {
  world_.enrol(world_.offer());
  const auto made = sampled_lease(4, {8, 4});
  world_.say_parameters(4);
  world_.say_lease(made);
  const auto frame = world_.hear(FrameType::contribution);
  ASSERT_TRUE(frame.has_value()) << world_.peer->why();
  const Contribution answer = decode_contribution(frame->head, Limits{}).value();
  EXPECT_EQ(answer.lease_id, made.lease.lease_id);
  EXPECT_EQ(answer.step, 4u);
  EXPECT_EQ(answer.version, 4u);
  EXPECT_EQ(answer.block, made.lease.block);
  EXPECT_EQ(answer.samples, static_cast<std::uint64_t>(made.lease.tensors[0].shape[0]));
  EXPECT_EQ(frame->payload, world_.expected(made, 4));
  EXPECT_EQ(world_.node->slots_computed(), 4u);
}

TEST_F(NodeTest, a_lease_is_computed_in_as_many_lanes_as_it_says) {
  // What no lease has told is taken to be long. Each lane waits for the other.
  std::barrier both(2);
  world_.touch = [&](std::uint64_t, std::span<float>) -> Status {
    if (world_.engines_made > 1) both.arrive_and_wait();
    return {};
  };
  world_.options.machine = {.id = "cellar", .cores = 2};
  world_.enrol(world_.offer());
  auto made = sampled_lease(4, {8, 4});
  made.lease.lanes = 2;
  world_.say_parameters(4);
  world_.say_lease(made);
  const auto frame = world_.hear(FrameType::contribution);
  ASSERT_TRUE(frame.has_value()) << world_.peer->why();
  EXPECT_EQ(decode_contribution(frame->head, Limits{})->lanes, 2u);
  EXPECT_EQ(frame->payload, world_.expected(made, 4));
  EXPECT_EQ(world_.engines_made, 2);
}

// What the coordinator shares with a node of its machine.
class SharedNodeTest : public NodeTest {
 protected:
  Ready enrol(const std::string& question) {
    Offer offer = world_.offer();
    offer.memory_probe = question;
    world_.start();
    world_.peer->say(FrameType::hello, Hello{.role = "coordinator"});
    world_.peer->say(FrameType::offer, offer);
    const auto frame = world_.hear(FrameType::ready);
    return frame ? decode_ready(frame->head, Limits{}).value() : Ready{};
  }
  std::shared_ptr<SharedBlock> block() const {
    return SharedBlock::create(world_.floats() * sizeof(float)).value();
  }
  void share_parameters(std::uint64_t version, const SharedBlock& memory) {
    const auto state = world_.state_of(version);
    std::ranges::copy(state, reinterpret_cast<float*>(memory.data()));
    world_.peer->say(FrameType::parameters,
                     Parameters{.version = version,
                                .floats_total = state.size(),
                                .coding = {.form = Form::shared},
                                .memory = memory.address(),
                                .tensors = {{DType::f32, Shape{static_cast<std::int64_t>(state.size())}}}});
  }
  static SampledLease lease_into(const SharedBlock& memory, std::uint64_t version, SlotBlock slots) {
    SampledLease made = sampled_lease(version, slots);
    made.lease.answer = {.form = Form::shared, .memory = memory.address()};
    return made;
  }
  std::vector<std::byte> bytes_in(const SharedBlock& memory) const {
    return {memory.data(), memory.data() + memory.address().bytes};
  }

  const SharedProbe probe_ = SharedProbe::make().value();
};

TEST_F(SharedNodeTest, it_says_that_it_shares_memory_when_it_finds_the_probe) {
  EXPECT_TRUE(probe_.is_answered_by(enrol(probe_.question()).memory_token));
}

TEST_F(SharedNodeTest, it_shares_none_when_it_does_not) {
  EXPECT_EQ(enrol(std::string(48, '1')).memory_token, "");
}

TEST_F(SharedNodeTest, a_lease_is_computed_from_one_block_into_another_and_no_payload_travels) {
  const auto parameters = block(), answers = block();
  (void)enrol(probe_.question());
  world_.options.machine.cores = 2;
  for (std::uint64_t version = 3; version < 6; ++version) {
    share_parameters(version, *parameters);
    const SampledLease made = lease_into(*answers, version, {8, 4});
    world_.say_lease(made);
    const auto frame = world_.hear(FrameType::contribution);
    ASSERT_TRUE(frame.has_value()) << world_.peer->why();
    EXPECT_TRUE(frame->payload.empty());
    const Contribution answer = decode_contribution(frame->head, Limits{}).value();
    EXPECT_EQ(answer.coding.form, Form::shared);
    EXPECT_EQ(answer.version, version);
    EXPECT_EQ(answer.tensors[0].shape.elements(), world_.floats());
    EXPECT_EQ(bytes_in(*answers), world_.expected(made, version));
  }
}

TEST_F(SharedNodeTest, lanes_add_up_into_the_block_too) {
  world_.options.machine = {.id = "cellar", .cores = 3};
  const auto parameters = block(), answers = block();
  (void)enrol(probe_.question());
  share_parameters(4, *parameters);
  auto made = lease_into(*answers, 4, {8, 8});
  made.lease.lanes = 3;
  world_.say_lease(made);
  EXPECT_EQ(world_.hear_contribution()->lanes, 3u);
  EXPECT_EQ(bytes_in(*answers), world_.expected(made, 4));
}

TEST_F(SharedNodeTest, a_version_that_travels_follows_one_that_is_shared) {
  const auto parameters = block();
  (void)enrol(probe_.question());
  share_parameters(4, *parameters);
  world_.say_parameters(5);
  const auto made = sampled_lease(5, {8, 2});
  world_.say_lease(made);
  const auto frame = world_.hear(FrameType::contribution);
  ASSERT_TRUE(frame.has_value()) << world_.peer->why();
  EXPECT_EQ(frame->payload, world_.expected(made, 5));
}

TEST_F(SharedNodeTest, a_void_lease_leaves_its_block_alone) {
  const auto parameters = block(), answers = block();
  (void)enrol(probe_.question());
  share_parameters(4, *parameters);
  world_.say_lease(lease_into(*answers, 3, {0, 2}));
  EXPECT_EQ(world_.hear_contribution()->samples, 0u);
  EXPECT_EQ(bytes_in(*answers), std::vector<std::byte>(world_.floats() * sizeof(float)));
}

TEST_F(SharedNodeTest, memory_that_is_not_there_or_of_another_size_ends_the_stay) {
  (void)enrol(probe_.question());
  const auto other = SharedBlock::create(world_.floats() * sizeof(float) + 4).value();
  world_.say_lease(lease_into(*other, 3, {0, 2}));
  EXPECT_NE(world_.ending().find("a shared block of"), std::string::npos) << world_.ending();
}

TEST_F(SharedNodeTest, parameters_without_a_payload_must_be_shared) {
  (void)enrol(probe_.question());
  world_.peer->say(FrameType::parameters, Parameters{.floats_total = 1, .tensors = {{DType::f32, Shape{1}}}});
  EXPECT_EQ(world_.ending(), "corrupt: a parameters frame without a payload");
}

TEST_F(NodeTest, there_are_no_more_lanes_than_cores) {
  world_.options.machine = {.id = "cellar", .cores = 3};
  world_.enrol(world_.offer());
  auto made = sampled_lease(1, {0, 8});
  made.lease.lanes = 1000;
  world_.say_lease(made);
  world_.say_parameters(made.lease.version);
  EXPECT_EQ(world_.hear_contribution()->lanes, 3u);
}

TEST_F(NodeTest, there_are_no_more_lanes_than_half_of_the_memory_has_room_for) {
  const std::uint64_t block = FakeEngine().description().floats() * sizeof(float);
  world_.options.machine = {.id = "cellar", .cores = 8, .memory_bytes = 2 * 3 * 4 * block};
  world_.enrol(world_.offer());
  auto made = sampled_lease(4, {8, 8});
  made.lease.lanes = 8;
  world_.say_parameters(4);
  world_.say_lease(made);
  EXPECT_EQ(world_.hear_contribution()->lanes, 3u);
}

TEST_F(NodeTest, where_a_slot_has_several_threads_there_is_one_lane) {
  world_.options.threads = 2;
  Offer offer = world_.offer();
  offer.threads = 2;
  world_.enrol(offer);
  auto made = sampled_lease(4, {8, 4});
  made.lease.lanes = 2;
  world_.say_parameters(4);
  world_.say_lease(made);
  EXPECT_EQ(world_.hear_contribution()->lanes, 1u);
  EXPECT_EQ(world_.engines_made, 1);
}

TEST_F(NodeTest, leases_ahead_wait_for_their_parameters) {
  world_.enrol(world_.offer());
  const auto ahead = sampled_lease(2, {0, 2}), now = sampled_lease(1, {0, 2});
  world_.say_lease(ahead);
  world_.say_lease(now);
  world_.say_parameters(1);
  EXPECT_EQ(world_.hear_contribution()->lease_id, now.lease.lease_id);
  world_.say_parameters(2);
  const auto frame = world_.hear(FrameType::contribution);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(decode_contribution(frame->head, Limits{})->lease_id, ahead.lease.lease_id);
  EXPECT_EQ(frame->payload, world_.expected(ahead, 2)) << "with the parameters of its own step";
}

TEST_F(NodeTest, leases_that_the_parameters_have_overtaken_are_answered_with_nothing) {
  world_.enrol(world_.offer());
  const auto overtaken = sampled_lease(1, {0, 2}), current = sampled_lease(3, {0, 2});
  world_.say_lease(overtaken);
  world_.say_lease(current);
  world_.say_parameters(3);
  for (int i = 0; i < 2; ++i) {
    const auto frame = world_.hear(FrameType::contribution);
    ASSERT_TRUE(frame.has_value());
    const Contribution answer = decode_contribution(frame->head, Limits{}).value();
    const bool is_void = answer.lease_id == overtaken.lease.lease_id;
    EXPECT_EQ(answer.lease_id, i == 0 ? overtaken.lease.lease_id : current.lease.lease_id);
    EXPECT_EQ(answer.samples == 0, is_void);
    EXPECT_EQ(answer.tensors.empty(), is_void);
    EXPECT_EQ(frame->payload.empty(), is_void);
  }
  EXPECT_EQ(world_.node->slots_computed(), 2u);
}

TEST_F(NodeTest, in_an_async_run_the_newest_parameters_do_for_every_lease) {
  Offer offer = world_.offer();
  offer.newest_parameters = true;
  world_.enrol(offer);
  const auto made = sampled_lease(1, {0, 1});
  world_.say_parameters(9);
  world_.say_lease(made);
  const auto frame = world_.hear(FrameType::contribution);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(decode_contribution(frame->head, Limits{})->version, 9u);
  EXPECT_EQ(frame->payload, world_.expected(made, 9));
}

TEST_F(NodeTest, parameters_come_in_parts_and_count_when_they_are_whole) {
  world_.enrol(world_.offer());
  const auto old = sampled_lease(1, {0, 1}), made = sampled_lease(2, {0, 1});
  world_.say_parameters(1);
  world_.say_parameters(2, 0, 20);
  world_.say_lease(made);
  world_.say_lease(old);
  EXPECT_EQ(world_.hear_contribution()->lease_id, old.lease.lease_id) << "half a version is none";
  world_.say_parameters(2, 20, 1);
  world_.say_parameters(2, 21, world_.floats() - 21);
  const auto frame = world_.hear(FrameType::contribution);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->payload, world_.expected(made, 2));
}

TEST_F(NodeTest, an_evaluation_has_sums_and_no_floats) {
  world_.enrol(world_.offer());
  world_.say_parameters(1);
  world_.say_lease(sampled_lease(1, {0, 4}, Work::evaluate));
  const auto frame = world_.hear(FrameType::contribution);
  ASSERT_TRUE(frame.has_value());
  const Contribution answer = decode_contribution(frame->head, Limits{}).value();
  EXPECT_EQ(answer.samples, 11u);
  EXPECT_GT(answer.loss_sum, 0.0);
  EXPECT_TRUE(answer.tensors.empty());
  EXPECT_TRUE(frame->payload.empty());
}

TEST_F(NodeTest, what_it_sends_goes_through_the_codec_that_the_lease_names) {
  world_.touch = [](std::uint64_t, std::span<float> contribution) -> Status {
    std::ranges::fill(contribution, 1.5f);
    return {};
  };
  world_.enrol(world_.offer());
  world_.say_parameters(1);
  SampledLease made = sampled_lease(1, {0, 1});
  made.lease.answer =
      to_wire(Encoding{.lossless = SectionCodec{.lossless = {LosslessKind::zstd, 3}, .shuffle_width = 4}});
  world_.say_lease(made);
  const auto frame = world_.hear(FrameType::contribution);
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->header.shuffle_width, 4);
  EXPECT_EQ(frame->header.codec, static_cast<std::uint8_t>(LosslessKind::zstd));
  EXPECT_LT(frame->payload.size(), world_.floats() * sizeof(float) / 2);
}

class NodeFeedbackTest : public NodeTest {
 protected:
  // Enrols, and answers one lease through a sparse codec.
  std::vector<float> answer_once() {
    world_.enrol(world_.offer());
    world_.say_parameters(1);
    SampledLease made = sampled_lease(1, {0, 2});
    made.lease.answer =
        to_wire(Encoding{.form = Form::gradient, .gradient = {.kind = GradientKind::topk, .density = 0.1}});
    world_.say_lease(made);
    lease_ = made.lease.lease_id;
    const auto frame = world_.hear(FrameType::contribution);
    if (!frame) return {};
    const Contribution answer = decode_contribution(frame->head, Limits{}).value();
    EXPECT_EQ(answer.coding.form, Form::gradient);
    const BlockShape shape{FakeEngine().description().parameters, world_.floats()};
    std::vector<float> said(world_.floats());
    const Target target{std::as_writable_bytes(std::span(said)), answer.tensors, &shape};
    EXPECT_TRUE(unform(frame->payload, answer.coding, target).ok());
    const auto bytes = world_.expected(made, 1);
    std::vector<float> held_back(world_.floats());
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(held_back)).begin());
    for (std::size_t i = 0; i < said.size(); ++i) held_back[i] -= said[i];
    const auto buffers = std::span(held_back).subspan(shape.parameters->floats());
    EXPECT_TRUE(std::ranges::all_of(buffers, [](float value) { return value == 0; })) << "those are exact";
    held_back.resize(shape.parameters->floats());
    return held_back;
  }
  std::vector<float> heard() {
    const auto frame = world_.hear(FrameType::feedback);
    if (!frame) return {};
    std::vector<float> floats(frame->payload.size() / sizeof(float));
    std::ranges::copy(frame->payload, std::as_writable_bytes(std::span(floats)).begin());
    return floats;
  }

  std::uint64_t lease_ = 0;  // that it answered
};

TEST_F(NodeFeedbackTest, asked_for_it_sends_a_copy_of_what_its_codec_held_back) {
  const auto held_back = answer_once();
  world_.peer->say(FrameType::verdict, Verdict{.lease_id = lease_, .counted = true});
  world_.peer->say(FrameType::feedback, Feedback{});
  EXPECT_EQ(heard(), held_back);
  world_.peer->say(FrameType::feedback, Feedback{});
  EXPECT_EQ(heard(), held_back) << "it still has it";
}

// What it hands over must have nothing in it of an answer that does not count.
TEST_F(NodeFeedbackTest, leaving_it_hands_it_over_when_its_answers_are_judged_and_says_goodbye) {
  const auto held_back = answer_once();
  world_.node->leave("told to");
  world_.peer->say(FrameType::feedback, Feedback{});
  world_.peer->say(FrameType::verdict, Verdict{.lease_id = lease_, .counted = true});
  EXPECT_EQ(heard(), held_back) << "the copy that was asked for";
  EXPECT_EQ(heard(), held_back);
  (void)world_.ending();
}

TEST_F(NodeFeedbackTest, without_error_feedback_it_leaves_and_waits_for_no_verdict) {
  world_.enrol(world_.offer());
  SampledLease made = sampled_lease(1, {2, 2});
  made.lease.answer = to_wire(Encoding{.form = Form::gradient, .gradient = {.kind = GradientKind::fp16}});
  world_.say_parameters(1);
  world_.say_lease(made);
  ASSERT_TRUE(world_.hear(FrameType::contribution).has_value());
  world_.node->leave("told to");
  (void)world_.ending();
}

TEST_F(NodeFeedbackTest, it_adds_what_another_had_to_its_own) {
  auto held_back = answer_once();
  const std::vector<float> more(held_back.size(), 0.25F);
  world_.peer->say(FrameType::feedback,
                   Feedback{.tensors = {{DType::f32, Shape{static_cast<std::int64_t>(more.size())}}}},
                   std::as_bytes(std::span(more)));
  world_.peer->say(FrameType::verdict, Verdict{.lease_id = lease_, .counted = true});
  world_.peer->say(FrameType::feedback, Feedback{});
  for (float& value : held_back) value += 0.25F;
  EXPECT_EQ(heard(), held_back);
}

TEST_F(NodeFeedbackTest, an_answer_that_does_not_count_leaves_no_trace_in_it) {
  const auto held_back = answer_once();
  SampledLease made = sampled_lease(1, {2, 2});
  made.lease.answer =
      to_wire(Encoding{.form = Form::gradient, .gradient = {.kind = GradientKind::topk, .density = 0.1}});
  world_.say_lease(made);
  ASSERT_TRUE(world_.hear(FrameType::contribution).has_value());
  world_.peer->say(FrameType::feedback, Feedback{});
  world_.peer->say(FrameType::verdict, Verdict{.lease_id = made.lease.lease_id, .counted = false});
  world_.peer->say(FrameType::verdict, Verdict{.lease_id = lease_, .counted = true});
  const auto copy = heard();
  ASSERT_EQ(copy.size(), held_back.size());
  for (std::size_t i = 0; i < copy.size(); ++i) EXPECT_NEAR(copy[i], held_back[i], 1e-5) << i;
}

TEST_F(NodeTest, parting_it_finishes_the_lease_that_it_computes_and_says_goodbye) {
  std::atomic<bool> leased = false, begun = false, may_end = false;
  world_.touch = [&](std::uint64_t, std::span<float>) -> Status {
    if (!leased) return {};  // what a node computes before its first lease is its own affair
    begun = true;
    world_.loop.post([] {});  // for run_until to look
    may_end.wait(false);
    return {};
  };
  world_.enrol(world_.offer());
  leased = true;
  world_.say_parameters(1);
  const auto first = sampled_lease(1, {0, 1}), second = sampled_lease(1, {1, 1});
  world_.say_lease(first);
  world_.say_lease(second);
  // The first lease is computed on a thread of its own, where it waits for us.
  ASSERT_TRUE(world_.run_until([&] { return begun.load(); }));
  world_.node->leave("the lid was closed");
  EXPECT_FALSE(world_.node->ended().has_value()) << "it is not done yet";
  may_end = true;
  may_end.notify_all();
  EXPECT_EQ(world_.hear_contribution()->lease_id, first.lease.lease_id);
  EXPECT_EQ(world_.ending(), "disconnected: the lid was closed");
  EXPECT_TRUE(world_.node->parted());
  EXPECT_TRUE(world_.run_until([&] { return world_.peer->closed(); }));
  EXPECT_EQ(world_.peer->why(), "disconnected: the other side left: the lid was closed");
  EXPECT_EQ(world_.peer->count(FrameType::contribution), 0u) << "the second lease is given back";
  EXPECT_EQ(world_.node->slots_computed(), 1u);
}

TEST_F(NodeTest, parting_with_nothing_to_compute_it_goes_at_once) {
  world_.enrol(world_.offer());
  world_.node->leave("enough");
  EXPECT_EQ(world_.ending(), "disconnected: enough");
  EXPECT_TRUE(world_.node->parted());
}

TEST_F(NodeTest, a_broken_link_is_no_parting_and_a_goodbye_is_one) {
  world_.enrol(world_.offer());
  world_.peer->connection().detach();
  EXPECT_TRUE(world_.ending().starts_with("disconnected")) << world_.ending();
  EXPECT_FALSE(world_.node->parted());

  world_.enrol(world_.offer());
  world_.peer->connection().close(disconnected("the run is finished"));
  EXPECT_EQ(world_.ending(), "disconnected: the other side left: the run is finished");
  EXPECT_TRUE(world_.node->parted());
}

TEST_F(NodeTest, an_engine_s_refusal_of_a_slot_ends_the_stay_and_tells_the_coordinator) {
  world_.touch = [](std::uint64_t, std::span<float>) -> Status { return invalid("targets are no classes"); };
  world_.enrol(world_.offer());
  world_.say_parameters(1);
  world_.say_lease(sampled_lease(1, {0, 1}));
  EXPECT_EQ(world_.ending(), "invalid: targets are no classes");
  EXPECT_TRUE(world_.run_until([&] { return world_.peer->closed(); }));
  EXPECT_EQ(world_.peer->why(), "invalid: the other side left: targets are no classes");
}

}  // namespace
}  // namespace w5xde
