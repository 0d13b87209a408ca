// What a peer may make a session do before it is of use, on a simulated loop.
#include "coordinator/session.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "net/identity.h"
#include "net/invitation.h"
#include "net/tls.h"
#include "support/hand_peer.h"
#include "support/memory_stream.h"
#include "support/sim_loop.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// A coordinator that only keeps what its session tells it.
class KeepingHost final : public Session::Host {
 public:
  const Offer* run_offer() override { return offer ? &*offer : nullptr; }
  Bytes model_file() override { return file; }
  const BlockShape& shape() override { return block; }
  Reduction::Buffer take_buffer() override { return std::make_unique<AlignedBuffer>(64); }
  const SharedProbe* memory_probe() override { return probe ? &*probe : nullptr; }
  Status ready(Session&) override { return {}; }
  Status landing(Session&, const Contribution&, std::span<float>, std::uint64_t) override { return {}; }
  Status contributed(Session&, const Contribution&, Reduction::Buffer) override { return {}; }
  Status fed_back(Session&, const Feedback&, std::span<const float>) override {
    ++feedbacks;
    return {};
  }
  StatusReport status() override {
    ++questions;
    return {.run = std::string(10'000, 'r')};
  }
  void drained(Session&) override {}
  void ended(Session&, const Error& reason) override { why = reason; }
  void gone(Session&) override { is_gone = true; }

  std::optional<Offer> offer = Offer{.model = "m", .model_fingerprint = 7};
  std::vector<std::byte> file;
  BlockShape block{BlockLayout::make({{.name = "w", .shape = Shape{16}}}, 1000).value(), 16};
  AccessControl* access() override { return guards; }

  std::optional<SharedProbe> probe;
  AccessControl* guards = nullptr;
  int feedbacks = 0;
  int questions = 0;
  std::optional<Error> why;
  bool is_gone = false;
};

class SessionTest : public testing::Test {
 protected:
  static constexpr std::size_t kCapacity = 64 * 1024;

  SessionTest() {
    auto [near, far] = make_memory_streams(loop_, kCapacity);
    session_ = std::make_unique<Session>(1, host_, std::move(near), SocketOptions{}, nullptr, log_);
    raw_ = std::move(far);
  }
  void TearDown() override {
    session_.reset();
    peer_.reset();
  }
  // A peer that answers heartbeats.
  void connect() { peer_ = std::make_unique<HandPeer>(std::move(raw_)); }
  void greet(const std::string& role) {
    if (!peer_) connect();
    peer_->say(FrameType::hello, Hello{.name = "n", .role = role});
    loop_.run_for(milliseconds(1));
  }
  void become_ready() {
    greet("node");
    peer_->say(FrameType::ready, Ready{.model_fingerprint = 7});
    loop_.run_for(milliseconds(1));
    ASSERT_TRUE(session_->is_ready());
  }
  void say_feedback(bool leaving) {
    const std::vector<std::byte> floats(16 * sizeof(float));
    peer_->say(FrameType::feedback, Feedback{.leaving = leaving, .tensors = {{DType::f32, Shape{16}}}},
               floats);
    loop_.run_for(milliseconds(1));
  }
  std::string why() const { return host_.why ? host_.why->to_string() : "still there"; }

  SimLoop loop_;
  Log log_{LogTier::silent};
  KeepingHost host_;
  std::unique_ptr<Stream> raw_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<HandPeer> peer_;
};

TEST_F(SessionTest, a_connection_that_says_nothing_is_gone_within_ten_seconds) {
  loop_.run_for(seconds(4));
  EXPECT_FALSE(host_.why);
  loop_.run_for(seconds(6));
  EXPECT_EQ(why(), "overloaded: no hello for 5 s");
  EXPECT_TRUE(host_.is_gone);
}

// Such as one that is too old to know what it was offered: it would compute in f32 without a word.
TEST_F(SessionTest, a_node_that_computes_in_another_type_than_the_run_is_refused) {
  host_.offer->compute = DType::bf16;
  greet("node");
  peer_->say(FrameType::ready, Ready{.model_fingerprint = 7});
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(why(), "incompatible: this run computes in bf16 and n in f32; update its w5xde");
}

TEST_F(SessionTest, a_node_that_computes_in_the_run_s_type_is_taken) {
  host_.offer->compute = DType::bf16;
  greet("node");
  peer_->say(FrameType::ready, Ready{.model_fingerprint = 7, .compute = DType::bf16});
  loop_.run_for(milliseconds(1));
  EXPECT_TRUE(session_->is_ready()) << why();
}

TEST_F(SessionTest, heartbeats_are_no_hello) {
  connect();
  for (int i = 0; i < 10; ++i) {
    peer_->say(FrameType::ping, Heartbeat{1});
    loop_.run_for(seconds(1));
  }
  EXPECT_EQ(why(), "overloaded: no hello for 5 s");
}

TEST_F(SessionTest, a_process_that_was_stopped_does_not_blame_its_peers_for_the_time) {
  connect();
  peer_->say(FrameType::hello, Hello{.name = "n"});
  loop_.freeze_for(minutes(5));
  loop_.run_for(seconds(2));
  EXPECT_EQ(why(), "still there");
  EXPECT_EQ(peer_->count(FrameType::offer), 1u);
}

// It would compute with samples as they come, and its gradients would be wrong ones.
TEST_F(SessionTest, a_node_that_cannot_prepare_samples_is_told_so_by_a_run_that_needs_it) {
  host_.offer->preparation.flip = true;
  connect();
  peer_->say(FrameType::hello, Hello{.protocol_max = 1, .software = "w5xde 0.0.9", .name = "n"});
  loop_.run_for(seconds(1));
  EXPECT_EQ(why(),
            "incompatible: w5xde 0.0.9 speaks protocol 1, and a run with --normalize or --augment needs 2; "
            "update it");
  EXPECT_EQ(peer_->count(FrameType::offer), 0u);
}

TEST_F(SessionTest, a_node_that_cannot_prepare_samples_is_welcome_where_none_are) {
  connect();
  peer_->say(FrameType::hello, Hello{.protocol_max = 1, .name = "n"});
  loop_.run_for(seconds(1));
  EXPECT_EQ(why(), "still there");
  EXPECT_EQ(peer_->count(FrameType::offer), 1u);
}

// It would take the file for a damaged one.
TEST_F(SessionTest, a_node_that_knows_no_sha256_is_told_so_by_a_run_with_a_model_file) {
  host_.offer->model_hash = std::string(64, 'a');
  connect();
  peer_->say(FrameType::hello, Hello{.protocol_max = 2, .software = "w5xde 0.0.9", .name = "n"});
  loop_.run_for(seconds(1));
  EXPECT_EQ(why(),
            "incompatible: w5xde 0.0.9 speaks protocol 2, and a run with a model file needs 3; update it");
}

TEST_F(SessionTest, a_node_has_minutes_to_load_its_model_and_not_for_ever) {
  greet("node");
  loop_.run_for(minutes(9));
  EXPECT_EQ(why(), "still there");
  loop_.run_for(minutes(2));
  EXPECT_EQ(why(), "overloaded: no ready for 600 s");
}

TEST_F(SessionTest, a_large_model_s_file_has_the_time_that_it_takes_over_a_slow_link) {
  host_.file.resize(64 * kMiB);
  greet("node");
  loop_.run_for(minutes(25));
  EXPECT_EQ(why(), "still there");
}

TEST_F(SessionTest, a_node_that_waits_for_the_offer_is_not_blamed) {
  host_.offer.reset();
  greet("node");
  loop_.run_for(minutes(60));
  EXPECT_EQ(why(), "still there");
}

TEST_F(SessionTest, a_node_that_is_ready_may_rest) {
  become_ready();
  loop_.run_for(minutes(60));
  EXPECT_EQ(why(), "still there");
}

TEST_F(SessionTest, an_observer_that_asks_stays_and_one_that_does_not_is_sent_away) {
  greet("observer");
  for (int i = 0; i < 10; ++i) {
    peer_->say({.type = FrameType::status});
    loop_.run_for(seconds(50));
  }
  EXPECT_EQ(peer_->count(FrameType::status), 10u) << why();
  loop_.run_for(seconds(70));
  EXPECT_EQ(why(), "overloaded: no question for 60 s");
}

TEST_F(SessionTest, a_peer_that_asks_for_the_status_and_does_not_read_has_one_reply_in_flight) {
  Head hello;
  encode(Hello{.name = "n", .role = "observer"}, hello);
  auto bytes = bytes_of_frame({.type = FrameType::hello, .head = hello});
  const auto question = bytes_of_frame({.type = FrameType::status});
  for (int i = 0; i < 1000; ++i) bytes.insert(bytes.end(), question.begin(), question.end());
  const iovec part{bytes.data(), bytes.size()};
  ASSERT_EQ(raw_->write({&part, 1}).value(), bytes.size());
  loop_.run_for(milliseconds(1));
  EXPECT_LE(host_.questions, 10) << "what the stream itself takes, and one more";
  EXPECT_LE(session_->connection().queued_bytes(), 20'000u);
  connect();
  const int before = host_.questions;
  loop_.run_for(milliseconds(1));
  EXPECT_LE(host_.questions, before + 1) << "all that was asked meanwhile has one answer";
  EXPECT_EQ(peer_->count(FrameType::status), static_cast<std::size_t>(host_.questions));
}

TEST_F(SessionTest, a_model_s_file_is_sent_once) {
  host_.file.resize(100);
  greet("node");
  peer_->say(FrameType::model, ModelPart{});
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(peer_->count(FrameType::model), 1u);
  peer_->say(FrameType::model, ModelPart{});
  loop_.run_for(milliseconds(1));
  EXPECT_NE(why().find("or was sent already"), std::string::npos) << why();
}

TEST_F(SessionTest, names_and_reasons_come_in_printable) {
  connect();
  peer_->say(FrameType::hello, Hello{.name = "a\x1b[2Jb"});
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(session_->name(), "a\\x1b[2Jb");
  peer_->connection().close(disconnected("bye\r" + std::string(1000, 'x')));
  loop_.run_for(milliseconds(1));
  EXPECT_TRUE(why().starts_with("disconnected: bye\\x0dxxx")) << why();
  EXPECT_LE(why().size(), 300u);
}

TEST_F(SessionTest, feedback_that_nobody_asked_for_is_refused) {
  become_ready();
  say_feedback(false);
  EXPECT_EQ(why(), "corrupt: feedback that nobody asked for");
  EXPECT_EQ(host_.feedbacks, 0);
}

TEST_F(SessionTest, feedback_is_taken_once_for_each_time_that_it_is_asked_for) {
  become_ready();
  ASSERT_TRUE(session_->ask_feedback().ok());
  loop_.run_for(milliseconds(1));
  say_feedback(false);
  EXPECT_EQ(host_.feedbacks, 1) << why();
  say_feedback(false);
  EXPECT_EQ(why(), "corrupt: feedback that nobody asked for");
  EXPECT_EQ(host_.feedbacks, 1);
}

TEST_F(SessionTest, a_node_that_leaves_hands_over_feedback_only_if_it_can_have_any) {
  become_ready();
  say_feedback(true);
  EXPECT_EQ(why(), "corrupt: feedback that nobody asked for");
}

// A session with TLS, and a peer with a key of its own that has proven no invitation yet.
class GuardedSessionTest : public SessionTest {
 protected:
  GuardedSessionTest() {
    session_.reset();
    host_.guards = &access_;
    restart();
  }
  void restart() {
    peer_.reset();
    session_.reset();
    host_.why.reset();
    auto [near, far] = make_memory_streams(loop_, kCapacity);
    const Identity here = Identity::load_or_make(folder_ / "here").value();
    const Identity there = Identity::load_or_make(folder_ / "there").value();
    key_ = there.name();
    session_ = std::make_unique<Session>(1, host_, TlsContext::server(here)->wrap(std::move(near)),
                                         SocketOptions{}, nullptr, log_);
    peer_ = std::make_unique<HandPeer>(TlsContext::client(there, here.fingerprint())->wrap(std::move(far)));
    loop_.run_for(milliseconds(1));
  }
  Proof proof() {
    GuestList::Entry entry{.name = "desk", .role = Role::owner, .uses = 0};
    entry.id.fill(std::byte{1});
    (void)GuestList::change(folder_ / "guests", [&](GuestList& list) { return list.add(entry); });
    Proof made{.invitation = entry.id};
    made.code = proof_of(entry.secret, *peer_->connection().stream().session_secret(), key_);
    return made;
  }

  TemporaryFolder folder_;
  AccessControl access_{loop_, {.guest_list = folder_ / "guests", .now = [] { return 1; }}, log_};
  std::string key_;
};

TEST_F(GuardedSessionTest, a_peer_is_told_nothing_of_the_run_before_it_has_proven_an_invitation) {
  greet("node");
  EXPECT_EQ(peer_->count(FrameType::offer), 0u) << why();
  loop_.run_for(seconds(7));
  EXPECT_EQ(why(), "overloaded: no proof of an invitation for 5 s");

  restart();
  greet("node");
  peer_->say(FrameType::proof, proof());
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(peer_->count(FrameType::offer), 1u) << why();
}

TEST_F(GuardedSessionTest, whatever_else_a_peer_says_before_its_proof_is_refused) {
  const std::vector<std::byte> floats(16 * sizeof(float));
  const std::vector<std::pair<std::function<void()>, std::string>> sayings = {
      {[&] { peer_->say(FrameType::ready, Ready{.model_fingerprint = 7}); }, "a ready that nobody waits for"},
      {[&] { peer_->say(FrameType::model, ModelPart{}); }, "that was not offered"},
      {[&] { peer_->say({.type = FrameType::status}); }, "the status is for who was invited"},
      {[&] {
         peer_->say(FrameType::contribution, Contribution{.block = {0, 1}});
       },
       "before ready"},
      {[&] { peer_->say(FrameType::feedback, Feedback{}); }, "before ready"},
      {[&] { peer_->say(FrameType::offer, Offer{}); }, "does not send offer frames"},
      {[&] { peer_->say(FrameType::hello, Hello{}); }, "a second hello"},
  };
  for (const auto& [say, reason] : sayings) {
    restart();
    greet("node");
    say();
    loop_.run_for(milliseconds(1));
    EXPECT_NE(why().find(reason), std::string::npos) << why() << ", but should say " << reason;
    EXPECT_EQ(peer_->count(FrameType::offer) + peer_->count(FrameType::status), 0u);
  }
}

TEST_F(GuardedSessionTest, a_proof_comes_once_and_behind_the_hello) {
  peer_->say(FrameType::proof, proof());
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(why(), "corrupt: a proof that nobody waits for");
  restart();
  greet("node");
  peer_->say(FrameType::proof, proof());
  peer_->say(FrameType::proof, proof());
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(why(), "corrupt: a proof that nobody waits for");
}

TEST_F(GuardedSessionTest, an_owner_that_asks_for_the_status_with_its_proof_is_answered_once_it_is_in) {
  greet("observer");
  peer_->say(FrameType::proof, proof());
  peer_->say({.type = FrameType::status});
  loop_.run_for(milliseconds(1));
  EXPECT_EQ(peer_->count(FrameType::status), 1u) << why();
}

TEST_F(GuardedSessionTest, a_proof_that_is_replayed_in_another_session_is_worth_nothing) {
  const Proof first = proof();
  restart();
  greet("node");
  peer_->say(FrameType::proof, first);
  loop_.run_for(milliseconds(1));
  EXPECT_NE(why().find("secret is another one"), std::string::npos) << why();
  EXPECT_EQ(peer_->count(FrameType::offer), 0u);
}

}  // namespace
}  // namespace w5xde
