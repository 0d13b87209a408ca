#include "record/guest_list.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>
#include <vector>

#include "base/file.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

constexpr std::int64_t kNow = 1'000'000;

std::string key(char digit) {
  return std::string(64, digit);
}

GuestList::Entry entry(const std::string& name, std::uint8_t id) {
  GuestList::Entry made{.name = name};
  made.id.fill(std::byte{id});
  made.secret.fill(std::byte{0xab});
  return made;
}

std::string said(const Status& status) {
  return status.ok() ? "ok" : status.error().message;
}

class GuestListTest : public testing::Test {
 protected:
  void add(const GuestList::Entry& made) {
    const auto list = GuestList::change(file_, [&](GuestList& changed) { return changed.add(made); });
    ASSERT_TRUE(list.ok()) << list.error().message;
  }
  Status bind(std::uint8_t id, char digit) {
    auto list = GuestList::change(
        file_, [&](GuestList& changed) { return changed.bind(entry("", id).id, key(digit), kNow); });
    return list.ok() ? Status() : Status(std::move(list).error());
  }
  GuestList read() const { return GuestList::read(file_).value(); }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "invitations.json";
};

TEST_F(GuestListTest, is_empty_before_there_is_a_file) {
  EXPECT_TRUE(read().entries().empty());
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(GuestListTest, keeps_all_that_was_said_of_an_invitation) {
  GuestList::Entry made = entry("desk", 1);
  made.role = Role::observer;
  made.uses = 3;
  made.expires = kNow + 5;
  add(made);
  ASSERT_TRUE(bind(1, 'a').ok());
  const GuestList list = read();
  ASSERT_EQ(list.entries().size(), 1u);
  const GuestList::Entry& found = list.entries()[0];
  EXPECT_EQ(found.name, "desk");
  EXPECT_EQ(found.id, made.id);
  EXPECT_EQ(found.secret, made.secret);
  EXPECT_EQ(found.role, Role::observer);
  EXPECT_EQ(found.uses, 3u);
  EXPECT_EQ(found.expires, kNow + 5);
  EXPECT_FALSE(found.revoked);
  EXPECT_EQ(found.identities, std::vector<std::string>{key('a')});
  EXPECT_EQ(list.find("desk"), &found);
  EXPECT_EQ(list.find("chair"), nullptr);
}

TEST_F(GuestListTest, is_for_its_owner_s_eyes_only) {
  add(entry("desk", 1));
  struct stat status {};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  std::filesystem::permissions(file_, std::filesystem::perms(0644));
  EXPECT_NE(GuestList::read(file_).error().message.find("chmod 600"), std::string::npos);
}

TEST_F(GuestListTest, an_invitation_lets_in_as_many_keys_as_it_has_uses_and_those_again) {
  GuestList::Entry made = entry("desk", 1);
  made.uses = 2;
  add(made);
  EXPECT_EQ(said(bind(1, 'a')), "ok");
  EXPECT_EQ(said(bind(1, 'b')), "ok");
  EXPECT_EQ(said(bind(1, 'c')),
            "the invitation 'desk' is used up: it was for 2 machines; ask the owner of the run for another");
  EXPECT_EQ(said(bind(1, 'a')), "ok") << "it was in before";
  EXPECT_EQ(read().entries()[0].identities.size(), 2u);
}

TEST_F(GuestListTest, one_with_no_end_of_uses_has_room_for_many) {
  GuestList::Entry made = entry("desk", 1);
  made.uses = 0;
  for (std::size_t i = 0; i < GuestList::kIdentitiesMax; ++i) {
    EXPECT_TRUE(made.check(key('a'), kNow).ok());
    made.identities.push_back(key('b'));
  }
  EXPECT_FALSE(made.check(key('a'), kNow).ok()) << "the list is bounded";
}

TEST_F(GuestListTest, an_expired_invitation_lets_in_only_those_that_were_in_before) {
  GuestList::Entry made = entry("desk", 1);
  made.uses = 0;
  made.expires = kNow + 10;
  made.identities = {key('a')};
  EXPECT_EQ(said(made.check(key('b'), kNow + 9)), "ok");
  EXPECT_EQ(said(made.check(key('b'), kNow + 10)),
            "the invitation 'desk' has expired; ask the owner of the run for another");
  EXPECT_EQ(said(made.check(key('a'), kNow + 10)), "ok");
}

TEST_F(GuestListTest, a_revoked_invitation_lets_nobody_in) {
  add(entry("desk", 1));
  ASSERT_TRUE(bind(1, 'a').ok());
  ASSERT_TRUE(GuestList::change(file_, [](GuestList& list) { return list.revoke("desk"); }).ok());
  EXPECT_EQ(said(bind(1, 'a')), "the invitation 'desk' was revoked; ask the owner of the run for another");
  EXPECT_TRUE(read().entries()[0].revoked);
  const auto none = GuestList::change(file_, [](GuestList& list) { return list.revoke("chair"); });
  EXPECT_NE(none.error().message.find("'chair'"), std::string::npos);
}

TEST_F(GuestListTest, a_change_that_is_refused_changes_nothing) {
  add(entry("desk", 1));
  const auto again = GuestList::change(file_, [](GuestList& list) { return list.add(entry("desk", 2)); });
  EXPECT_EQ(again.error().message, "there is an invitation 'desk' already; choose another name");
  EXPECT_FALSE(GuestList::change(file_, [](GuestList& list) { return list.add(entry("a\nb", 3)); }).ok());
  EXPECT_EQ(read().entries().size(), 1u);
  EXPECT_EQ(read().free_name(Role::node), "node-1");
  add(entry("node-1", 4));
  EXPECT_EQ(read().free_name(Role::node), "node-2");
}

TEST_F(GuestListTest, changes_of_several_processes_at_once_are_all_kept) {
  constexpr std::uint8_t kThreads = 4, kEach = 5;
  std::vector<std::thread> threads;
  for (std::uint8_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i] {
      for (std::uint8_t j = 0; j < kEach; ++j) {
        const auto id = static_cast<std::uint8_t>(i * kEach + j);
        add(entry("n" + std::to_string(id), id));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read().entries().size(), std::size_t{kThreads} * kEach);
}

TEST_F(GuestListTest, a_damaged_file_is_named_and_nothing_of_it_is_repeated) {
  add(entry("desk", 1));
  const std::string whole(text_of(MappedFile::open(file_)->bytes()));
  const auto write = [this](const std::string& text) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << text;
  };
  const auto refusal = [this] {
    const auto list = GuestList::read(file_);
    return list.ok() ? "accepted" : list.error().message;
  };
  write(whole.substr(0, whole.size() / 2));
  EXPECT_NE(refusal().find(file_.string()), std::string::npos) << refusal();
  EXPECT_EQ(refusal().find("abab"), std::string::npos) << refusal();
  std::string wrong = whole;
  wrong.replace(wrong.find("abab"), 4, "xyxy");
  write(wrong);
  EXPECT_NE(refusal().find("'desk' is damaged"), std::string::npos) << refusal();
  wrong = whole;
  wrong.replace(wrong.find("\"version\": 1"), 12, "\"version\": 9");
  write(wrong);
  EXPECT_NE(refusal().find("version 9"), std::string::npos) << refusal();
}

TEST(RoleTest, has_a_name) {
  for (const Role role : {Role::node, Role::observer, Role::owner})
    EXPECT_EQ(*parse_role(name_of(role)), role);
  EXPECT_EQ(parse_role("king").error().message, "'king' is no role; use node, observer or owner");
}

}  // namespace
}  // namespace w5xde
