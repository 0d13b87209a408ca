#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/log.h"
#include "net/address.h"
#include "net/identity.h"
#include "net/invitation.h"
#include "net/tls.h"
#include "node/join.h"
#include "record/guest_list.h"
#include "w5xde/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace w5xde {

// The files of a user's own certificates; empty where none are given.
struct CertificateFlags {
  std::string certificate;
  std::string key;
  std::string authority;

  Status check() const;
};
// What --authority says depends on the command.
void add_certificate_flags(CLI::App& command, CertificateFlags& flags, const std::string& authority_help);

// How a node or an observer reaches a coordinator, and what it shows there. Plain data: the engine host's
// nodes are given it.
struct Route {
  Address address;
  std::string invitation;  // as text; empty: it has none
  // PEM files of its own identity; empty where the connection is not encrypted.
  std::filesystem::path certificate;
  std::filesystem::path key;
  std::filesystem::path
      authority;  // that the coordinator's certificate leads to; empty: the invitation names it

  // `target` is HOST:PORT, an invitation, or a file with one. This machine's identity is in the user's state
  // folder; it is made there if need be.
  static Result<Route> find(const std::string& target, const CertificateFlags& flags);
  // From the machine of a run's folder, to the coordinator that has it: with the folder's own invitation.
  // Without encryption where that coordinator has none.
  static Result<Route> to_owner(const std::filesystem::path& run, const Address& address);

  // What a connection over it needs; nothing where it is not encrypted.
  struct Keys {
    TlsContext tls;
    std::string identity;
    std::optional<Invitation> invitation;
  };
  Result<std::optional<Keys>> keys() const;
};

// w5xde::join, with the keys that the route needs.
Result<std::string> join_over(const Route& route, JoinOptions options, const Log& log);

// The invitation that this entry of a guest list is, to the coordinator at `address` with this certificate.
Invitation invitation_of(const GuestList::Entry& entry, const Address& address, const Digest& certificate);

}  // namespace w5xde
