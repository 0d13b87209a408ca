// Who may join and who may look: coordinators with TLS, and processes that come with invitations of all
// kinds.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/hex.h"
#include "net/identity.h"
#include "net/invitation.h"
#include "pool.h"
#include "record/guest_list.h"

namespace w5xde {
namespace {

namespace fs = std::filesystem;

enum Code { kSuccess = 0, kUsage = 2, kInterrupted = 4, kIncompatible = 5 };

const Words kMlp = {"--model", "mlp:10,20,10", "--data", "synthetic"};

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

unsigned mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 0777u;
}

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class IdentityTest : public testing::Test {
 protected:
  static constexpr const char* kForever = "100000000";

  void expect(int code, Process process, const Words& parts) const {
    EXPECT_EQ(process.wait(), code) << process.said();
    for (const std::string& part : parts) {
      EXPECT_NE(process.said().find(part), std::string::npos) << "no '" << part << "' in:\n"
                                                              << process.said();
    }
  }

  // A coordinator with TLS that listens, and has printed how to join it.
  Process serve(const Words& more = {"--steps", "20"}, const std::string& run = "run") {
    Process process = pool_.start(Words{"serve", run, "--tls", "--listen", "127.0.0.1:0"} + kMlp + more,
                                  {.with_output = true});
    const std::string line = process.wait_for_line("join with: w5xde join ");
    invitation_ = line.substr(line.rfind(' ') + 1);
    address_ = parse_invitation(invitation_).value().address.to_string();
    return process;
  }
  // A process of another machine, as far as its keys go.
  Process start(const std::string& machine, const Words& arguments) const {
    return pool_.start(arguments, {.environment = {{"XDG_STATE_HOME", (pool_.folder() / machine).string()}},
                                   .with_output = true});
  }
  Process join(const std::string& machine, const std::string& target, const Words& more = {}) const {
    return start(machine, Words{"join", target, "--name", machine, "--attempts", "3"} + more);
  }
  // What `w5xde invite` prints.
  std::string invite(const Words& more) const {
    Process process = pool_.start(Words{"invite", "run"} + more, {.with_output = true});
    EXPECT_EQ(process.wait(), kSuccess) << process.said();
    const std::string& said = process.said();
    const std::size_t at = said.find(kInvitationScheme);
    return at == std::string::npos ? said : said.substr(at, said.find('\n', at) - at);
  }
  // The invitation, changed in one place, with a checksum that fits.
  std::string forged(const std::function<void(Invitation&)>& change) const {
    Invitation invitation = parse_invitation(invitation_).value();
    change(invitation);
    return invitation.to_string();
  }
  // The run trains with an invited node until its end: nobody else has done it harm.
  void expect_that_it_still_works(Process coordinator) {
    Process node = join("desk", invitation_);
    expect(kSuccess, std::move(coordinator), {"exactly once"});
    expect(kSuccess, std::move(node), {"the run is finished"});
    EXPECT_EQ(pool_.summary().at("steps"), 20);
  }

  Pool pool_{{.name = "mlp_numbers", .flags = kMlp}};
  std::string address_;
  std::string invitation_;
};

TEST_F(IdentityTest, an_invited_node_trains_to_the_bits_of_a_run_without_tls) {
  expect(kSuccess,
         pool_.start(Words{"train", "plain", "--nodes", "1", "--steps", "20", "--json", "plain.json"} + kMlp),
         {});
  const auto plain = nlohmann::json::parse(content_of(pool_.folder() / "plain.json"));
  Process coordinator = serve();
  Process node = join("desk", invitation_, {"--nodes", "2"});
  expect(kSuccess, std::move(coordinator), {"exactly once"});
  expect(kSuccess, std::move(node), {"the run is finished"});
  EXPECT_EQ(pool_.summary().at("parameters_hash"), plain.at("parameters_hash"));
}

TEST_F(IdentityTest, local_nodes_of_a_run_with_tls_need_nothing_from_anybody) {
  expect(kSuccess, pool_.start(Words{"train", "run", "--tls", "--nodes", "2", "--steps", "20"} + kMlp), {});
  EXPECT_EQ(pool_.summary().at("steps"), 20);
}

TEST_F(IdentityTest, keys_and_invitations_are_their_owner_s_alone_and_in_no_log_or_database) {
  Process coordinator = serve();
  expect(kSuccess, join("desk", invitation_), {"the run is finished"});
  EXPECT_EQ(coordinator.wait(), kSuccess) << coordinator.said();
  EXPECT_EQ(mode_of(pool_.run() / "identity.pem"), 0600u);
  EXPECT_EQ(mode_of(pool_.run() / "invitations.json"), 0600u);
  EXPECT_EQ(mode_of(pool_.folder() / "desk/w5xde"), 0700u);
  EXPECT_EQ(mode_of(pool_.folder() / "desk/w5xde/identity.pem"), 0600u);
  const std::string secret = invitation_.substr(invitation_.rfind('/') + 1);
  const std::string digits = hex_text(parse_invitation(invitation_)->secret);
  const std::string& said = coordinator.said();
  EXPECT_EQ(said.find(digits), std::string::npos);
  EXPECT_EQ(said.find(secret), said.rfind(secret)) << "printed once, for the terminal";
  for (const auto& entry : fs::recursive_directory_iterator(pool_.run())) {
    if (!entry.is_regular_file()) continue;
    const std::string content = content_of(entry.path());
    EXPECT_EQ(content.find(secret), std::string::npos) << entry.path();
    const bool is_the_list = entry.path().filename() == "invitations.json";
    EXPECT_EQ(content.find(digits) != std::string::npos, is_the_list) << entry.path();
  }
}

TEST_F(IdentityTest, an_invitation_that_is_mistyped_or_cut_off_is_told_from_a_wrong_one) {
  Process coordinator = serve();
  std::string mistyped = invitation_;
  char& character = mistyped[mistyped.size() - 30];
  character = character == 'A' ? 'B' : 'A';
  expect(kUsage, join("a", mistyped), {"mistyped"});
  expect(kUsage, join("a", invitation_.substr(0, invitation_.size() - 3)),
         {"cut off", "100 characters of 103"});
  expect_that_it_still_works(std::move(coordinator));
}

TEST_F(IdentityTest, a_wrong_invitation_is_refused_with_what_to_do) {
  Process coordinator = serve();
  expect(kIncompatible, join("a", forged([](Invitation& wrong) { wrong.id.fill(std::byte{1}); })),
         {"refused", "not of this run", "ask the owner"});
  expect(kIncompatible, join("a", forged([](Invitation& wrong) { wrong.secret.fill(std::byte{1}); })),
         {"refused", "secret is another one", "ask the owner"});
  expect(kIncompatible, join("a", forged([](Invitation& wrong) { wrong.certificate.fill(std::byte{1}); })),
         {"refused", "another certificate", "ask for a new invitation"});
  EXPECT_EQ(GuestList::read(pool_.run() / "invitations.json")->find("nodes")->identities.size(), 0u);
  expect_that_it_still_works(std::move(coordinator));
}

TEST_F(IdentityTest, an_invitation_that_has_expired_or_is_used_up_is_refused) {
  Process coordinator = serve();
  GuestList::Entry old{.name = "old", .expires = 1};
  old.id.fill(std::byte{7});
  ASSERT_TRUE(GuestList::change(pool_.run() / "invitations.json", [&](GuestList& list) {
                return list.add(old);
              }).ok());
  const std::string expired = forged([&](Invitation& invitation) {
    invitation.id = old.id;
    invitation.secret = old.secret;
  });
  expect(kIncompatible, join("a", expired), {"refused", "'old' has expired", "ask the owner"});

  const std::string once = invite({"--name", "once", "--role", "observer"});
  expect(kSuccess, start("a", {"status", once}), {"waiting for nodes"});
  expect(kSuccess, start("a", {"status", once}), {"waiting for nodes"});
  expect(kIncompatible, start("b", {"status", once}), {"'once' is used up", "ask the owner"});
  expect_that_it_still_works(std::move(coordinator));
}

TEST_F(IdentityTest, whose_invitation_is_revoked_is_sent_away_and_nobody_else) {
  Process coordinator = serve({"--steps", kForever});
  const std::string lab_invitation = invite({"--name", "lab"});
  Process desk = join("desk", invitation_);
  Process lab = join("lab", lab_invitation);
  coordinator.wait_for_line("joined from");
  coordinator.wait_for_line("joined from");
  expect(kSuccess, pool_.start({"invite", "run", "--revoke", "lab"}), {});
  expect(kIncompatible, std::move(lab), {"'lab' was revoked", "ask the owner"});
  expect(kIncompatible, join("lab", lab_invitation), {"refused", "'lab' was revoked"});
  Process status = pool_.start({"status", "run"}, {.with_output = true});
  EXPECT_EQ(status.wait(), kSuccess) << status.said();
  EXPECT_NE(status.said().find("\ndesk-1 "), std::string::npos) << status.said();
  EXPECT_NE(status.said().find("'lab' was revoked"), std::string::npos) << status.said();
  Process list = pool_.start({"invite", "run", "--list"}, {.with_output = true});
  EXPECT_EQ(list.wait(), kSuccess);
  EXPECT_NE(list.said().find("revoked"), std::string::npos) << list.said();
  coordinator.signal(SIGINT);
  expect(kInterrupted, std::move(coordinator), {"go on with: w5xde serve run", "--tls"});
}

TEST_F(IdentityTest, one_side_without_tls_is_told_so) {
  Process coordinator = serve();
  expect(kIncompatible, start("a", {"join", address_}), {"refused", "speaks TLS only", "invitation"});
  expect(kIncompatible, start("a", {"status", address_}), {"speaks TLS only", "w5xde invite RUN"});
  Process plain =
      pool_.start(Words{"serve", "plain", "--listen", "127.0.0.1:0"} + kMlp, {.with_output = true});
  const std::string listens = plain.wait_for_line("listens on ");
  const Address address = parse_address(listens.substr(listens.rfind(' ') + 1)).value();
  expect(kIncompatible, join("a", forged([&](Invitation& other) { other.address = address; })),
         {"refused", "speaks without TLS"});
  expect_that_it_still_works(std::move(coordinator));
}

TEST_F(IdentityTest, the_status_is_shown_to_those_who_may_look) {
  Process coordinator = serve();
  expect(kSuccess, start("a", {"status", "run"}), {"waiting for nodes"});
  expect(kSuccess, start("a", {"status", invite({"--role", "observer"})}), {"waiting for nodes"});
  expect(kSuccess, start("a", {"status", invite({"--role", "owner"})}), {"waiting for nodes"});
  expect(kIncompatible, start("a", {"status", invitation_}), {"'nodes' is for a node", "--role observer"});
  expect(kIncompatible, join("a", invite({"--name", "eye", "--role", "observer"})),
         {"refused", "'eye' is for an observer", "--role node"});
  expect_that_it_still_works(std::move(coordinator));
}

TEST_F(IdentityTest, an_identity_stays_the_same_when_the_run_goes_on) {
  Process coordinator = serve({"--steps", kForever});
  coordinator.signal(SIGINT);
  EXPECT_EQ(coordinator.wait(), kInterrupted) << coordinator.said();
  const std::string before = content_of(pool_.run() / "identity.pem");
  const std::string guests = content_of(pool_.run() / "invitations.json");
  const Invitation first = parse_invitation(invitation_).value();
  Process again = serve({"--steps", "20"});
  EXPECT_EQ(content_of(pool_.run() / "identity.pem"), before);
  EXPECT_EQ(content_of(pool_.run() / "invitations.json"), guests);
  EXPECT_EQ(parse_invitation(invitation_)->certificate, first.certificate);
  expect_that_it_still_works(std::move(again));
}

TEST_F(IdentityTest, a_network_is_listened_to_with_tls_unless_that_is_refused) {
  Process open = pool_.start(Words{"serve", "open", "--listen", "0.0.0.0:0"} + kMlp, {.with_output = true});
  open.wait_for_line("join with: w5xde join w5xde://");
  Process insecure = pool_.start(Words{"serve", "insecure", "--listen", "0.0.0.0:0", "--insecure"} + kMlp);
  insecure.wait_for_line("warning: --insecure: nothing is encrypted");
  EXPECT_FALSE(fs::exists(pool_.folder() / "insecure/identity.pem"));
  expect(kUsage, pool_.start(Words{"serve", "both", "--tls", "--insecure"} + kMlp), {"leave it out"});
}

TEST_F(IdentityTest, certificates_of_a_user_s_own_take_the_place_of_invitations) {
  for (const char* side : {"here", "there"}) {
    ASSERT_TRUE(write_self_signed(pool_.folder() / (std::string(side) + ".pem"),
                                  pool_.folder() / (std::string(side) + ".key"), "localhost")
                    .ok());
  }
  Process coordinator =
      serve({"--steps", "20", "--certificate", "here.pem", "--key", "here.key", "--authority", "there.pem"});
  const std::string target = "localhost" + address_.substr(address_.rfind(':'));
  const Words shown = {"--certificate", "there.pem", "--key", "there.key"};
  expect(kIncompatible, start("a", Words{"join", target, "--authority", "here.pem", "--attempts", "1"}),
         {"refused"});
  expect(kIncompatible, start("a", Words{"join", target, "--authority", "there.pem"} + shown),
         {"certificate"});
  expect(kUsage, start("a", {"join", target, "--certificate", "there.pem"}), {"--key too"});
  Process node = start("a", Words{"join", target, "--authority", "here.pem"} + shown);
  expect(kSuccess, std::move(coordinator), {"exactly once"});
  expect(kSuccess, std::move(node), {"the run is finished"});
}

}  // namespace
}  // namespace w5xde
