#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "w5xde/result.h"

namespace w5xde {

// What an invitation lets its holder do.
enum class Role {
  node,      // compute
  observer,  // ask for the status
  owner,     // both
};

Result<Role> parse_role(std::string_view name);
std::string_view name_of(Role role);

// A run's invitations, and the keys that came in with them: RUN/invitations.json, which is a secret. One
// object is what the file said at one moment.
class GuestList {
 public:
  using Id = std::array<std::byte, 8>;
  using Secret = std::array<std::byte, 32>;

  static constexpr std::size_t kInvitationsMax = 1000;
  static constexpr std::size_t kIdentitiesMax = 4096;  // of one invitation
  static constexpr std::size_t kNameBytesMax = 64;

  struct Entry {
    std::string name;
    Id id{};
    Secret secret{};
    Role role = Role::node;
    std::uint64_t uses = 1;               // how many keys may come in with it; 0: any number
    std::optional<std::int64_t> expires;  // seconds since 1970; none: never
    bool revoked = false;
    std::vector<std::string> identities;  // that came in with it

    // Whether this key may come in: because it was in before, or as one more.
    Status check(const std::string& identity, std::int64_t now) const;
    bool knows(const std::string& identity) const;
  };

  // Empty when there is no file yet.
  static Result<GuestList> read(const std::filesystem::path& path);
  // Reads the file, lets `edit` change the list, and writes it if that was ok, while no other process does.
  static Result<GuestList> change(const std::filesystem::path& path,
                                  const std::function<Status(GuestList&)>& edit);

  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(const Id& id) const;
  const Entry* find(std::string_view name) const;

  // The name and the id must be new.
  Status add(Entry entry);
  Status revoke(std::string_view name);
  // Notes that the key has come in with the invitation, if it may.
  Status bind(const Id& id, const std::string& identity, std::int64_t now);
  // "node-3": one that no invitation has.
  std::string free_name(Role role) const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace w5xde
