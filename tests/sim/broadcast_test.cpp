// Versions on their way to nodes, whatever happens in the middle of one.
#include "versions/broadcast.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "net/connection.h"
#include "node/replica.h"
#include "record/checkpoint.h"
#include "support/fake_engine.h"
#include "support/memory_stream.h"
#include "support/sim_loop.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kPartFloats = 10;

// A node that does nothing but take parameters.
class Taker final : private Connection::Owner {
 public:
  Taker(SimLoop& loop, const BlockShape& shape) : replica(shape) {
    auto [near_end, far_end] = make_memory_streams(loop, 1 << 20);
    near = Connection::start(std::move(near_end), *this, {});
    far_ = Connection::start(std::move(far_end), *this, {});
  }
  ~Taker() override {
    near->detach();
    far_->detach();
  }

  Replica replica;
  SentVersion sent;
  std::vector<LosslessPolicy> policies;
  PayloadStats stats;
  std::shared_ptr<Connection> near;
  std::string why = "still open";

 private:
  Result<MutableBytes> place(const FrameHeader& header, Bytes head) override {
    W5XDE_TRY(Parameters parameters, decode_parameters(head, Limits{}));
    return replica.place(header, std::move(parameters), receiver_);
  }
  Status received(const FrameHeader& header, Bytes, MutableBytes payload) override {
    W5XDE_CHECK(replica.finish(header, payload, receiver_));
    return {};
  }
  void closed(const Error& reason) override { why = reason.to_string(); }

  SteadyClock clock_;
  PayloadReceiver receiver_{nullptr, clock_};
  std::shared_ptr<Connection> far_;
};

class BroadcastTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeEngine engine;
    const ModelDescription& model = engine.description();
    std::vector<float> state(model.floats());
    ASSERT_TRUE(engine.initialise(1, state).ok());
    const std::span<const float> all = state;
    const std::vector<NamedBlock> blocks = {
        {"parameters", model.parameters.get(), all.first(model.parameters->floats())},
        {"buffers", model.buffers.get(), all.subspan(model.parameters->floats())}};
    ASSERT_TRUE(write_checkpoint(folder_ / "first", {}, blocks).ok());
    learner_ = Learner::from(CheckpointFile::open(folder_ / "first").value(), {},
                             {.optimizer = {.learning_rate = 0.1}}, nullptr)
                   .value();
    shape_ = {learner_->parameters(), learner_->floats()};
    broadcast_.emplace(shape_, Broadcast::Options{.part_floats = kPartFloats}, nullptr, loop_);
    for (int i = 0; i < 4; ++i) takers_.push_back(std::make_unique<Taker>(loop_, shape_));
    sum_ = AlignedBuffer(shape_.floats * sizeof(float));
  }

  std::span<float> sum() { return {reinterpret_cast<float*>(sum_.data()), shape_.floats}; }
  void new_sum(Random& random) {
    std::ranges::fill(sum(), 0.0f);
    for (const auto& entry : shape_.parameters->entries()) {
      for (float& value : sum().subspan(entry.offset, entry.shape.elements()))
        value = static_cast<float>(random.normal());
    }
  }
  PartCodecs codecs(Taker& taker) { return {&none_, taker.policies}; }

  void step_part() {
    if (learner_->stepped() + kPartFloats >= shape_.floats) return;
    ASSERT_TRUE(learner_->apply_part(sum().subspan(learner_->stepped(), kPartFloats), 2));
    for (auto& taker : takers_) {
      ASSERT_TRUE(
          broadcast_->send_ahead(*learner_, taker->sent, codecs(*taker), *taker->near, taker->stats).ok());
    }
  }
  void commit(Random& random) {
    ASSERT_TRUE(learner_->apply(sum_, 2, 1));
    broadcast_->show(*learner_);
    new_sum(random);
  }
  // It has what it was shown, or what is, where that is the same.
  void send_to(Taker& taker) {
    if (taker.sent.version == learner_->version()) return;
    ASSERT_TRUE(broadcast_->send(*learner_, taker.sent, codecs(taker), *taker.near, taker.stats).ok());
    loop_.run_for(std::chrono::milliseconds(1));
    ASSERT_EQ(taker.why, "still open");
    ASSERT_EQ(taker.replica.version(), learner_->version());
    const auto shown = broadcast_->shown();
    const std::span<const float> exact(reinterpret_cast<const float*>(learner_->state()->data()),
                                       shape_.parameters->floats());
    const std::span<const float> got(reinterpret_cast<const float*>(taker.replica.state()->data()),
                                     exact.size());
    ASSERT_TRUE(std::ranges::equal(got, shown.empty() ? exact : shown)) << "version " << learner_->version();
  }

  TemporaryFolder folder_;
  SimLoop loop_;
  BlockShape shape_;
  std::unique_ptr<Learner> learner_;
  std::optional<Broadcast> broadcast_;
  std::vector<std::unique_ptr<Taker>> takers_;
  AlignedBuffer sum_;
  SectionCodec none_;
};

TEST_F(BroadcastTest, nodes_have_what_they_were_shown_whatever_codec_comes_in_the_middle_of_a_version) {
  const char* const names[] = {"none", "int8", "bf16", "topk:0.3", "int8", "none"};
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    new_sum(random);
    for (int turn = 0; turn < 400; ++turn) {
      SCOPED_TRACE("turn " + std::to_string(turn));
      const std::uint64_t event = random.below(10);
      if (event < 5) {
        ASSERT_NO_FATAL_FAILURE(step_part());
      } else if (event < 7) {
        ASSERT_NO_FATAL_FAILURE(commit(random));
      } else if (event < 8) {
        broadcast_->set_codec(parse_gradient_codec(names[random.below(std::size(names))]).value());
      }
      loop_.run_for(std::chrono::milliseconds(1));
      // One takes every version, others now and then.
      ASSERT_NO_FATAL_FAILURE(send_to(*takers_[0]));
      ASSERT_NO_FATAL_FAILURE(send_to(*takers_[random.below(takers_.size())]));
    }
    if (learner_->next()) {
      ASSERT_NO_FATAL_FAILURE(commit(random));
    }
  }
}

TEST_F(BroadcastTest, who_follows_is_sent_less_than_a_whole_version) {
  Random random(1);
  new_sum(random);
  Taker& member = *takers_[0];
  Taker& late_comer = *takers_[1];
  EXPECT_FALSE(broadcast_->follows(late_comer.sent.version, *learner_));
  broadcast_->set_codec(parse_gradient_codec("topk:0.1").value());
  ASSERT_NO_FATAL_FAILURE(send_to(member));
  const std::uint64_t whole = member.stats.wire_bytes;
  for (int i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(commit(random));
    EXPECT_TRUE(broadcast_->follows(member.sent.version, *learner_));
    const std::uint64_t before = member.stats.wire_bytes;
    ASSERT_NO_FATAL_FAILURE(send_to(member));
    EXPECT_LT(member.stats.wire_bytes - before, whole);
  }
  ASSERT_NO_FATAL_FAILURE(send_to(late_comer));
  EXPECT_EQ(late_comer.stats.wire_bytes, whole);
  for (int i = 0; i < 100; ++i) ASSERT_NO_FATAL_FAILURE(commit(random));
  EXPECT_FALSE(broadcast_->follows(late_comer.sent.version, *learner_)) << "too many versions ago";
}

}  // namespace
}  // namespace w5xde
