#include "record/guest_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/hex.h"
#include "base/secret_file.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kVersion = 1;
constexpr std::array<std::string_view, 3> kRoles = {"node", "observer", "owner"};

constexpr std::size_t kIdentityChars = 64;

bool is_identity(const std::string& text) {
  std::array<std::byte, kIdentityChars / 2> ignored{};
  return parse_hex(text, ignored);
}

json json_of(const GuestList::Entry& entry) {
  json out = {{"name", entry.name},
              {"id", hex_text(entry.id)},
              {"secret", hex_text(entry.secret)},
              {"role", name_of(entry.role)},
              {"uses", entry.uses},
              {"revoked", entry.revoked},
              {"identities", entry.identities}};
  out["expires"] = entry.expires ? json(*entry.expires) : json();
  return out;
}

// Throws what the library throws where the JSON is another.
Result<GuestList::Entry> entry_of(const json& in) {
  GuestList::Entry entry;
  in.at("name").get_to(entry.name);
  W5XDE_TRY(entry.role, parse_role(in.at("role").get<std::string>()));
  in.at("uses").get_to(entry.uses);
  in.at("revoked").get_to(entry.revoked);
  in.at("identities").get_to(entry.identities);
  if (const json& expires = in.at("expires"); !expires.is_null()) entry.expires = expires.get<std::int64_t>();
  if (!parse_hex(in.at("id").get<std::string>(), entry.id) ||
      !parse_hex(in.at("secret").get<std::string>(), entry.secret) ||
      entry.identities.size() > GuestList::kIdentitiesMax ||
      !std::ranges::all_of(entry.identities, is_identity))
    return corrupt("the entry '{}' is damaged", entry.name);
  return entry;
}

Result<GuestList> parse(const std::string& text) {
  GuestList list;
  try {
    const json in = json::parse(text);
    if (in.at("version").get<int>() != kVersion)
      return incompatible("it is of version {}, and this w5xde knows {}; update it",
                          in.at("version").get<int>(), kVersion);
    for (const json& each : in.at("invitations")) {
      W5XDE_TRY(GuestList::Entry entry, entry_of(each));
      W5XDE_CHECK(list.add(std::move(entry)));
    }
  } catch (const json::exception& error) {
    // The library's message may quote what it read.
    return corrupt("it is not a list of invitations (error {})", error.id);
  }
  return list;
}

}  // namespace

Result<Role> parse_role(std::string_view name) {
  const auto found = std::ranges::find(kRoles, name);
  if (found == kRoles.end()) return invalid("'{}' is no role; use node, observer or owner", name);
  return static_cast<Role>(found - kRoles.begin());
}

std::string_view name_of(Role role) {
  return kRoles[static_cast<std::size_t>(role)];
}

Result<GuestList> GuestList::read(const fs::path& path) {
  if (!real_disk().exists(path)) return GuestList();
  W5XDE_CHECK(check_private(path));
  W5XDE_TRY(const MappedFile file, MappedFile::open(path));
  auto list = parse(std::string(text_of(file.bytes())));
  return list.ok() ? std::move(list) : std::move(list).error().within(path.string());
}

Result<GuestList> GuestList::change(const fs::path& path, const std::function<Status(GuestList&)>& edit) {
  W5XDE_TRY(const FileLock lock, FileLock::wait_for(path.string() + ".lock"));
  W5XDE_TRY(GuestList list, read(path));
  W5XDE_CHECK(edit(list));
  json out = {{"version", kVersion}, {"invitations", json::array()}};
  for (const Entry& entry : list.entries_) out["invitations"].push_back(json_of(entry));
  const std::string text = out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  W5XDE_CHECK(write_secret_file(path, bytes_of(text)));
  return list;
}

const GuestList::Entry* GuestList::find(const Id& id) const {
  const auto found = std::ranges::find(entries_, id, &Entry::id);
  return found == entries_.end() ? nullptr : &*found;
}

const GuestList::Entry* GuestList::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  return found == entries_.end() ? nullptr : &*found;
}

Status GuestList::add(Entry entry) {
  const auto usual = [](unsigned char character) {
    return std::isalnum(character) != 0 || character == '-' || character == '_' || character == '.';
  };
  if (entry.name.empty() || entry.name.size() > kNameBytesMax || !std::ranges::all_of(entry.name, usual))
    return invalid("'{}' is no name of an invitation; use 1 to {} letters, digits and - _ .", entry.name,
                   kNameBytesMax);
  if (entries_.size() >= kInvitationsMax)
    return overloaded("a run has at most {} invitations, revoked ones too", kInvitationsMax);
  if (find(entry.name) != nullptr || find(entry.id) != nullptr)
    return invalid("there is an invitation '{}' already; choose another name", entry.name);
  entries_.push_back(std::move(entry));
  return {};
}

Status GuestList::revoke(std::string_view name) {
  const auto found = std::ranges::find(entries_, name, &Entry::name);
  if (found == entries_.end())
    return invalid("there is no invitation '{}'; `w5xde invite RUN --list` shows those there are", name);
  found->revoked = true;
  return {};
}

bool GuestList::Entry::knows(const std::string& identity) const {
  return std::ranges::find(identities, identity) != identities.end();
}

Status GuestList::Entry::check(const std::string& identity, std::int64_t now) const {
  if (revoked)
    return incompatible("the invitation '{}' was revoked; ask the owner of the run for another", name);
  if (knows(identity)) return {};
  if (expires && now >= *expires)
    return incompatible("the invitation '{}' has expired; ask the owner of the run for another", name);
  if ((uses > 0 && identities.size() >= uses) || identities.size() >= kIdentitiesMax)
    return incompatible(
        "the invitation '{}' is used up: it was for {} machine{}; ask the owner of the run for another", name,
        identities.size(), identities.size() == 1 ? "" : "s");
  return {};
}

Status GuestList::bind(const Id& id, const std::string& identity, std::int64_t now) {
  const auto found = std::ranges::find(entries_, id, &Entry::id);
  if (found == entries_.end()) return invalid("there is no such invitation");
  W5XDE_CHECK(found->check(identity, now));
  if (!found->knows(identity)) found->identities.push_back(identity);
  return {};
}

std::string GuestList::free_name(Role role) const {
  for (std::size_t number = 1;; ++number) {
    std::string name = fmt::format("{}-{}", name_of(role), number);
    if (find(name) == nullptr) return name;
  }
}

}  // namespace w5xde
