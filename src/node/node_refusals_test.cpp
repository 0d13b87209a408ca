// What a node does not take from a coordinator, and what it says about it.
#include <gtest/gtest.h>

#include "base/file.h"
#include "net/crypto.h"
#include "support/node_world.h"
#include "wire/hello.h"

namespace w5xde {
namespace {

class NodeRefusalsTest : public testing::Test {
 protected:
  // The node's reason to end, which is also what the coordinator hears.
  void expect_refusal(const std::string& reason) {
    const std::string ending = world_.ending();
    EXPECT_NE(ending.find(reason), std::string::npos) << ending;
    ASSERT_TRUE(world_.run_until([&] { return world_.peer->closed(); }));
    EXPECT_NE(world_.peer->why().find(world_.node->ended()->message), std::string::npos)
        << world_.peer->why();
  }
  Parameters flat(std::uint64_t first, std::int64_t count, std::uint64_t total) {
    return {
        .version = 1, .first_float = first, .floats_total = total, .tensors = {{DType::f32, Shape{count}}}};
  }

  NodeWorld world_;
};

TEST_F(NodeRefusalsTest, parameters_with_a_hole_in_them) {
  world_.enrol(world_.offer());
  world_.say_parameters(1, 0, 10);
  world_.say_parameters(1, 11, 5);
  expect_refusal("corrupt: parameters with a hole in them");
}

TEST_F(NodeRefusalsTest, parameters_that_begin_in_the_middle) {
  world_.enrol(world_.offer());
  world_.say_parameters(1, 0, 10);
  world_.say_parameters(2, 10, 10);
  expect_refusal("corrupt: parameters with a hole in them");
}

TEST_F(NodeRefusalsTest, parameters_of_another_model) {
  world_.enrol(world_.offer());
  const std::vector<std::byte> payload(40);
  world_.peer->say(FrameType::parameters, flat(0, 10, world_.floats() + 1), payload);
  expect_refusal("corrupt: parameters of 65 floats; this model has 64");
}

TEST_F(NodeRefusalsTest, parameters_whose_payload_is_shorter_than_they_say) {
  world_.enrol(world_.offer());
  const std::vector<std::byte> payload(39);
  world_.peer->say(FrameType::parameters, flat(0, 10, world_.floats()), payload);
  expect_refusal("corrupt: a parameters frame has 39 bytes for a payload of 40");
}

TEST_F(NodeRefusalsTest, parameters_and_leases_before_the_model) {
  world_.start();
  world_.peer->say(FrameType::hello, Hello{.role = "coordinator"});
  (void)world_.hear(FrameType::hello);
  world_.say_parameters(1);
  expect_refusal("corrupt: parameters before the model");

  world_.start();
  world_.peer->say(FrameType::hello, Hello{.role = "coordinator"});
  (void)world_.hear(FrameType::hello);
  world_.say_lease(sampled_lease(1, {0, 1}));
  expect_refusal("corrupt: a lease before the model");
}

TEST_F(NodeRefusalsTest, a_payload_before_the_hello) {
  world_.start();
  world_.say_lease(sampled_lease(1, {0, 1}));
  expect_refusal("bytes; at most 0");
}

TEST_F(NodeRefusalsTest, a_lease_that_would_take_more_memory_than_is_allowed) {
  world_.enrol(world_.offer());
  Lease lease = sampled_lease(1, {0, 1}).lease;
  lease.slot_samples = {1u << 31};
  lease.tensors = {{DType::f32, Shape{1ll << 31, 3}}, {DType::u8, Shape{1ll << 31}}};
  const std::vector<std::byte> payload(100);
  world_.peer->say(FrameType::lease, lease, payload);
  expect_refusal("overloaded: tensors take more than the 1073741824 bytes that a payload may have");
}

TEST_F(NodeRefusalsTest, frames_that_describe_a_payload_and_have_none) {
  world_.enrol(world_.offer());
  world_.peer->say(FrameType::lease, sampled_lease(1, {0, 1}).lease);
  expect_refusal("corrupt: a lease frame without a payload");

  world_.enrol(world_.offer());
  world_.say_parameters(1, 0, 40);
  world_.peer->say(FrameType::parameters, flat(40, 24, world_.floats()));
  expect_refusal("corrupt: a parameters frame without a payload");

  world_.enrol(world_.offer());
  world_.peer->say(FrameType::model, ModelPart{});
  expect_refusal("corrupt: a model frame without a payload");
}

TEST_F(NodeRefusalsTest, a_lease_whose_samples_are_not_all_there) {
  world_.enrol(world_.offer());
  auto made = sampled_lease(1, {0, 2});
  made.lease.slot_samples.back() += 1;
  world_.say_lease(made);
  expect_refusal("corrupt: a lease of 6 samples has other tensors than their inputs and targets");
}

TEST_F(NodeRefusalsTest, frames_that_only_nodes_send) {
  world_.enrol(world_.offer());
  world_.peer->say(FrameType::ready, Ready{});
  expect_refusal("corrupt: a coordinator does not send ready frames");
}

TEST_F(NodeRefusalsTest, an_offer_for_another_number_of_threads) {
  Offer offer = world_.offer();
  offer.threads = 4;
  world_.enrol(offer);
  expect_refusal("incompatible: this run computes a slot with 4 threads; join with --threads 4");
}

TEST_F(NodeRefusalsTest, an_offer_of_a_model_that_comes_out_differently_here) {
  Offer offer = world_.offer();
  offer.model_fingerprint ^= 1;
  world_.enrol(offer);
  expect_refusal("update the older w5xde");
}

TEST_F(NodeRefusalsTest, a_lease_to_be_answered_with_a_codec_that_it_does_not_know) {
  world_.enrol(world_.offer());
  SampledLease made = sampled_lease(1, {0, 1});
  made.lease.answer.lossless = 77;
  world_.say_lease(made);
  expect_refusal("corrupt: codec 77 is not known");
}

TEST_F(NodeRefusalsTest, a_lease_to_be_answered_with_a_gradient_codec_that_is_none) {
  for (const GradientCodec& codec : {GradientCodec{.kind = static_cast<GradientKind>(7)},
                                     GradientCodec{.kind = GradientKind::topk, .density = 0},
                                     GradientCodec{.kind = GradientKind::topk, .density = NAN},
                                     GradientCodec{.kind = GradientKind::powersgd, .rank = 0}}) {
    NodeWorld world;
    world.start();
    world.enrol(world.offer());
    SampledLease made = sampled_lease(1, {0, 1});
    made.lease.answer = to_wire(Encoding{.form = Form::gradient, .gradient = codec});
    world.say_lease(made);
    EXPECT_NE(world.ending().find("is not known"), std::string::npos) << world.ending();
  }
}

TEST_F(NodeRefusalsTest, a_second_offer) {
  world_.enrol(world_.offer());
  world_.peer->say(FrameType::offer, world_.offer());
  expect_refusal("corrupt: a second offer");
  EXPECT_EQ(world_.engines_made, 1);
}

TEST_F(NodeRefusalsTest, a_second_offer_also_when_the_first_names_no_model) {
  Offer nameless = world_.offer();
  nameless.model.clear();
  world_.enrol(nameless);
  world_.peer->say(FrameType::offer, nameless);
  expect_refusal("corrupt: a second offer");
  EXPECT_EQ(world_.engines_made, 1);
}

TEST_F(NodeRefusalsTest, an_offer_of_samples_that_nobody_has_memory_for) {
  Offer huge = world_.offer();
  huge.inputs.push_back({.name = "more", .shape = {1ll << 20, 1ll << 20}});
  world_.enrol(huge);
  expect_refusal("overloaded: the run's samples have 'more' of [1048576, 1048576]; a sample may have");
  Offer none = world_.offer();
  none.inputs.clear();
  world_.enrol(none);
  expect_refusal("corrupt: the run's samples have no input");
  EXPECT_EQ(world_.engines_made, 0);
}

TEST_F(NodeRefusalsTest, more_leases_than_it_has_memory_for) {
  SampledLease made = sampled_lease(1, {0, 1});
  world_.options.machine.memory_bytes = 2 * (10 * made.payload.size() + 1);
  world_.enrol(world_.offer());
  // They wait for parameters that do not come.
  for (std::uint64_t i = 0; i < 10; ++i, ++made.lease.lease_id) world_.say_lease(made);
  ASSERT_TRUE(world_.run_until([&] { return world_.node->waits_for_parameters(); }));
  world_.say_lease(made);
  expect_refusal("overloaded: 11 leases with");
}

TEST_F(NodeRefusalsTest, the_engine_is_told_how_large_a_model_may_be) {
  world_.options.machine.memory_bytes = 160;
  world_.enrol(world_.offer());
  EXPECT_EQ(world_.model.floats_max, 10u);
}

// A model that is a file.
class ModelFileTest : public NodeRefusalsTest {
 protected:
  Offer offer_of_file() {
    Offer offer = world_.offer();
    offer.model_hash = sha256_hex(file_);
    offer.model_bytes = file_.size();
    return offer;
  }
  void offer(const Offer& offer) {
    world_.start();
    world_.peer->say(FrameType::hello, Hello{.role = "coordinator"});
    world_.peer->say(FrameType::offer, offer);
    (void)world_.run_until([&] {
      return world_.peer->closed() || world_.peer->count(FrameType::model) > 0 ||
             world_.peer->count(FrameType::ready) > 0;
    });
  }
  void say_part(std::uint64_t offset, std::uint64_t bytes) {
    world_.peer->say(FrameType::model, ModelPart{.offset = offset, .bytes = bytes},
                     Bytes(file_).subspan(offset, bytes));
  }
  std::filesystem::path cached() { return world_.options.model_cache / (sha256_hex(file_) + ".pt"); }

  std::vector<std::byte> file_ = std::vector<std::byte>(1000, std::byte{'m'});
};

TEST_F(ModelFileTest, a_model_s_file_is_asked_for_once_and_kept_by_its_hash) {
  offer(offer_of_file());
  ASSERT_TRUE(world_.peer->take(FrameType::model).has_value()) << world_.peer->why();
  say_part(0, 300);
  say_part(300, 700);
  ASSERT_TRUE(world_.hear(FrameType::ready).has_value()) << world_.peer->why();
  EXPECT_EQ(world_.engine_s_file, cached());
  EXPECT_TRUE(std::ranges::equal(MappedFile::open(cached())->bytes(), file_));

  offer(offer_of_file());
  EXPECT_TRUE(world_.peer->take(FrameType::ready).has_value()) << world_.peer->why();
  EXPECT_EQ(world_.peer->count(FrameType::model), 0u) << "it has the file";
}

TEST_F(ModelFileTest, a_kept_file_that_is_damaged_is_asked_for_again) {
  std::filesystem::create_directories(world_.options.model_cache);
  const Bytes damaged = Bytes(file_).first(999);
  ASSERT_TRUE(write_file_atomically(cached(), {&damaged, 1}).ok());
  offer(offer_of_file());
  EXPECT_TRUE(world_.peer->take(FrameType::model).has_value()) << world_.peer->why();
}

TEST_F(ModelFileTest, a_file_with_another_hash_is_refused_and_not_kept) {
  Offer other = offer_of_file();
  other.model_hash = std::string(64, '0');
  offer(other);
  say_part(0, 1000);
  expect_refusal("corrupt: the model's file arrived with hash " + sha256_hex(file_));
  EXPECT_EQ(world_.engines_made, 0);
  EXPECT_FALSE(std::filesystem::exists(world_.options.model_cache));
}

TEST_F(ModelFileTest, parts_out_of_order_or_past_the_end_are_refused) {
  offer(offer_of_file());
  say_part(300, 100);
  expect_refusal("corrupt: a part of the model's file that was not asked for");

  Offer shorter = offer_of_file();
  shorter.model_bytes = 500;
  offer(shorter);
  say_part(0, 501);
  expect_refusal("corrupt: a part of the model's file that was not asked for");
}

TEST_F(ModelFileTest, a_part_of_a_file_that_the_node_has_is_refused) {
  std::filesystem::create_directories(world_.options.model_cache);
  const Bytes whole(file_);
  ASSERT_TRUE(write_file_atomically(cached(), {&whole, 1}).ok());
  offer(offer_of_file());
  say_part(0, 1000);
  expect_refusal("corrupt: a part of the model's file that was not asked for");
  EXPECT_EQ(world_.engines_made, 1);
}

TEST_F(ModelFileTest, a_hash_that_leads_out_of_the_folder_leads_nowhere) {
  Offer climbing = offer_of_file();
  climbing.model_hash = "../" + climbing.model_hash;
  offer(climbing);
  expect_refusal("incompatible: the hash of the run's model is no SHA-256");
  EXPECT_TRUE(std::filesystem::is_empty(world_.folder.path()));
}

TEST_F(ModelFileTest, a_file_that_nobody_vouches_for_runs_only_if_its_hash_is_accepted) {
  world_.options.model_files = NodeOptions::ModelFiles::accepted;
  world_.options.accepted = {std::string(64, '0')};
  offer(offer_of_file());
  const std::string hash = sha256_hex(file_);
  expect_refusal("join with an invitation, or, if you trust the file, with --accept " + hash);
  EXPECT_EQ(world_.peer->count(FrameType::model), 0u) << "it is not even asked for";

  world_.options.accepted.push_back(hash);
  offer(offer_of_file());
  EXPECT_TRUE(world_.peer->take(FrameType::model).has_value()) << world_.peer->why();
}

TEST_F(ModelFileTest, a_hash_of_an_older_kind_is_refused) {
  Offer older = offer_of_file();
  older.model_hash.resize(32);
  offer(older);
  expect_refusal("incompatible: the hash of the run's model is no SHA-256; update the coordinator's w5xde");
}

TEST_F(ModelFileTest, a_file_larger_than_half_of_the_memory_is_refused_before_it_comes) {
  world_.options.machine.memory_bytes = 2 * file_.size() - 2;
  offer(offer_of_file());
  expect_refusal("overloaded: the run's model has 1000 bytes; at most 999");
}

TEST_F(ModelFileTest, a_file_larger_than_any_model_is_refused_before_it_comes) {
  Offer huge = offer_of_file();
  huge.model_bytes = 1ull << 40;
  offer(huge);
  expect_refusal("overloaded: the run's model has 1099511627776 bytes");
}

}  // namespace
}  // namespace w5xde
