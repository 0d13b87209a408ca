// Who is let in, on a simulated loop and with a guest list on the real disk.
#include "coordinator/access_control.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "net/invitation.h"
#include "support/sim_loop.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

using std::chrono::seconds;

constexpr std::int64_t kNow = 1'000'000;

class AccessControlTest : public testing::Test {
 protected:
  struct Guest {
    std::unique_ptr<AccessControl::Stay> stay;
    std::optional<Result<Role>> answer;
    std::optional<Error> sent_away;

    std::string said() const {
      if (!answer) return "no answer";
      return answer->ok() ? std::string(name_of(**answer)) : answer->error().message;
    }
  };

  void SetUp() override { open(false); }
  void open(bool authority_vouches) {
    access_.emplace(
        loop_,
        AccessControl::Options{
            .guest_list = file_, .authority_vouches = authority_vouches, .now = [this] { return now_; }},
        log_);
  }
  GuestList::Entry invite(const std::string& name, Role role = Role::node, std::uint64_t uses = 0) {
    GuestList::Entry entry{.name = name, .role = role, .uses = uses};
    entry.id.fill(std::byte{++last_id_});
    entry.secret.fill(std::byte{static_cast<std::uint8_t>(100 + last_id_)});
    EXPECT_TRUE(GuestList::change(file_, [&](GuestList& list) { return list.add(entry); }).ok());
    return entry;
  }
  void revoke(const std::string& name) {
    EXPECT_TRUE(GuestList::change(file_, [&](GuestList& list) { return list.revoke(name); }).ok());
  }
  static AccessControl::Request request(const GuestList::Entry& entry, char key, std::uint8_t machine = 1) {
    AccessControl::Request made{.identity = std::string(64, key), .is_node = true, .host = "10.0.0.1"};
    made.session_secret.fill(std::byte{9});
    made.proof.invitation = entry.id;
    made.proof.machine.fill(std::byte{machine});
    made.proof.code = proof_of(entry.secret, made.session_secret, made.identity);
    return made;
  }
  std::unique_ptr<Guest> come(const AccessControl::Request& request) {
    auto guest = std::make_unique<Guest>();
    guest->stay = access_->ask(
        request, [raw = guest.get()](Result<Role> answer) { raw->answer = std::move(answer); },
        [raw = guest.get()](Error reason) { raw->sent_away = std::move(reason); });
    loop_.run_for(seconds(1));
    return guest;
  }
  std::string said_to(const AccessControl::Request& request) { return come(request)->said(); }
  std::size_t keys_of(const std::string& name) const {
    return GuestList::read(file_)->find(name)->identities.size();
  }

  SimLoop loop_;
  Log log_{LogTier::silent};
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "invitations.json";
  std::int64_t now_ = kNow;
  std::uint8_t last_id_ = 0;
  std::optional<AccessControl> access_;
};

TEST_F(AccessControlTest, who_proves_an_invitation_comes_in_and_its_key_is_noted) {
  const auto desk = invite("desk", Role::node, 1);
  EXPECT_EQ(said_to(request(desk, 'a')), "node");
  EXPECT_EQ(keys_of("desk"), 1u);
  EXPECT_EQ(said_to(request(desk, 'a')), "node") << "again, without another use";
  EXPECT_EQ(said_to(request(desk, 'b')),
            "the invitation 'desk' is used up: it was for 1 machine; ask the owner of the run for another");
  EXPECT_EQ(keys_of("desk"), 1u);
}

TEST_F(AccessControlTest, a_proof_of_another_secret_session_or_key_is_refused_and_uses_nothing) {
  const auto desk = invite("desk", Role::node, 1);
  auto other_secret = desk;
  other_secret.secret.fill(std::byte{1});
  auto other_session = request(desk, 'a');
  other_session.session_secret.fill(std::byte{8});
  auto other_key = request(desk, 'a');
  other_key.identity = std::string(64, 'b');
  auto no_key = request(desk, 'a');
  no_key.identity.clear();
  no_key.proof.code = proof_of(desk.secret, no_key.session_secret, "");
  for (const auto& wrong : {request(other_secret, 'a'), other_session, other_key, no_key})
    EXPECT_EQ(said_to(wrong),
              "the invitation's secret is another one here; ask the owner of the run for an invitation");
  EXPECT_EQ(keys_of("desk"), 0u);
}

TEST_F(AccessControlTest, an_invitation_of_another_run_and_none_at_all_are_refused) {
  auto stranger = invite("desk");
  stranger.id.fill(std::byte{77});
  EXPECT_EQ(said_to(request(stranger, 'a')),
            "the invitation is not of this run; ask the owner of the run for one");
  AccessControl::Request nothing{.identity = std::string(64, 'a'), .is_node = true};
  EXPECT_EQ(said_to(nothing), "only who has an invitation may come in; ask the owner of the run for one");
}

TEST_F(AccessControlTest, an_authority_vouches_for_nodes_and_for_nobody_else) {
  open(true);
  AccessControl::Request vouched{.identity = std::string(64, 'a'), .is_node = true};
  EXPECT_EQ(said_to(vouched), "node");
  vouched.is_node = false;
  EXPECT_EQ(said_to(vouched), "only who has an invitation may come in; ask the owner of the run for one");
}

TEST_F(AccessControlTest, a_role_says_who_may_compute_and_who_may_look) {
  const auto node = invite("n"), observer = invite("o", Role::observer), owner = invite("w", Role::owner);
  auto looks = [](AccessControl::Request request) {
    request.is_node = false;
    return request;
  };
  EXPECT_EQ(said_to(request(node, 'a')), "node");
  EXPECT_EQ(said_to(looks(request(observer, 'a'))), "observer");
  EXPECT_EQ(said_to(request(owner, 'a')), "owner");
  EXPECT_EQ(said_to(looks(request(owner, 'a'))), "owner");
  EXPECT_NE(said_to(looks(request(node, 'b'))).find("--role observer"), std::string::npos);
  EXPECT_NE(said_to(request(observer, 'b')).find("--role node"), std::string::npos);
  EXPECT_EQ(keys_of("n") + keys_of("o"), 2u) << "a refusal uses nothing";
}

TEST_F(AccessControlTest, an_invitation_that_has_expired_lets_in_only_keys_that_were_in_before) {
  const auto desk = invite("desk");
  ASSERT_TRUE(GuestList::change(file_, [&](GuestList& list) {
                auto entry = desk;
                entry.name = "later";
                entry.id.fill(std::byte{50});
                entry.expires = kNow + 10;
                return list.add(entry);
              }).ok());
  auto later = desk;
  later.id.fill(std::byte{50});
  EXPECT_EQ(said_to(request(later, 'a')), "node");
  now_ = kNow + 10;
  EXPECT_EQ(said_to(request(later, 'b')),
            "the invitation 'later' has expired; ask the owner of the run for another");
  EXPECT_EQ(said_to(request(later, 'a')), "node");
}

TEST_F(AccessControlTest, who_is_in_with_a_revoked_invitation_is_sent_away_and_nobody_else) {
  const auto desk = invite("desk"), lab = invite("lab");
  const auto revoked = come(request(desk, 'a'));
  const auto other = come(request(lab, 'b'));
  revoke("desk");
  // Somebody who comes in meanwhile has the list read anew, too.
  EXPECT_EQ(said_to(request(lab, 'c')), "node");
  loop_.run_for(seconds(2));
  ASSERT_TRUE(revoked->sent_away.has_value());
  EXPECT_EQ(revoked->sent_away->message,
            "the invitation 'desk' was revoked; ask the owner of the run for another");
  EXPECT_FALSE(other->sent_away.has_value());
  EXPECT_NE(said_to(request(desk, 'a')).find("was revoked"), std::string::npos);
}

TEST_F(AccessControlTest, nobody_is_sent_away_because_an_invitation_expires_or_another_is_added) {
  auto desk = invite("desk", Role::node, 1);
  const auto guest = come(request(desk, 'a'));
  invite("lab");
  now_ += 1'000'000;
  loop_.run_for(seconds(3));
  EXPECT_FALSE(guest->sent_away.has_value());
}

TEST_F(AccessControlTest, one_key_on_two_machines_is_refused_to_the_second_while_the_first_is_there) {
  const auto desk = invite("desk");
  auto first = come(request(desk, 'a', 1));
  const auto neighbour = come(request(desk, 'a', 1));
  EXPECT_EQ(neighbour->said(), "node") << "another node of the same machine";
  const auto second = come(request(desk, 'a', 2));
  EXPECT_NE(second->said().find("this key is in use on another machine, at 10.0.0.1"), std::string::npos)
      << second->said();
  EXPECT_EQ(second->answer->error().kind, ErrorKind::overloaded) << "it may try again";
  EXPECT_FALSE(first->sent_away.has_value());
  first.reset();
  EXPECT_NE(said_to(request(desk, 'a', 2)), "node") << "the neighbour is there";
}

TEST_F(AccessControlTest, a_guest_that_leaves_before_its_answer_is_not_called) {
  const auto desk = invite("desk");
  bool called = false;
  auto stay = access_->ask(
      request(desk, 'a'), [&](const Result<Role>&) { called = true; }, [](const Error&) {});
  stay.reset();
  loop_.run_for(seconds(1));
  EXPECT_FALSE(called);
}

TEST_F(AccessControlTest, a_guest_list_that_is_damaged_meanwhile_changes_nothing) {
  const auto desk = invite("desk", Role::node, 1);
  const auto guest = come(request(desk, 'a'));
  ASSERT_EQ(guest->said(), "node");
  const auto damaged = folder_ / "damaged";
  std::ofstream(damaged) << "{";
  std::filesystem::permissions(damaged, std::filesystem::perms(0600));
  std::filesystem::rename(damaged, file_);
  loop_.run_for(seconds(2));
  EXPECT_FALSE(guest->sent_away.has_value());
  EXPECT_EQ(said_to(request(desk, 'a')), "node") << "it is known already";
  auto another = request(desk, 'b');
  EXPECT_NE(said_to(another), "node");
}

}  // namespace
}  // namespace w5xde
