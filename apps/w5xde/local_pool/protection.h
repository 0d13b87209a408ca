#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "local_pool/route.h"
#include "net/identity.h"
#include "net/tls.h"
#include "record/guest_list.h"
#include "record/run_folder.h"
#include "w5xde/result.h"

namespace w5xde {

// The invitations that a run begins with: for commands on the coordinator's machine, and for all nodes.
inline constexpr const char* kOwnersName = "owner";
inline constexpr const char* kNodesName = "nodes";

// What a coordinator that others can reach has: an identity, TLS, and a guest list.
struct Protection {
  Identity identity;
  TlsContext tls;

  // Makes of these what the run's folder does not have yet.
  static Result<Protection> of(const RunFolder& folder, const CertificateFlags& flags);
};

// A new invitation with a secret of its own; its name is to be filled in.
Result<GuestList::Entry> new_invitation(Role role, std::uint64_t uses);

// How others reach what listens at `address`: one that listens everywhere is known by its machine's name.
Address address_for_others(Address address);

}  // namespace w5xde
