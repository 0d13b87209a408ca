#include "local_pool/protection.h"

#include <utility>

#include "base/errors.h"
#include "net/crypto.h"
#include "node/machine.h"

namespace w5xde {

namespace {

Status add_first(GuestList& guests, Role role, const char* name) {
  constexpr std::uint64_t kAnyNumber = 0;
  W5XDE_TRY(GuestList::Entry entry, new_invitation(role, kAnyNumber));
  entry.name = name;
  return guests.add(std::move(entry));
}

// Those that were made before stay, revoked ones too.
Status add_first_ones(GuestList& guests) {
  if (!guests.entries().empty()) return {};
  W5XDE_CHECK(add_first(guests, Role::owner, kOwnersName));
  return add_first(guests, Role::node, kNodesName);
}

}  // namespace

Result<Protection> Protection::of(const RunFolder& folder, const CertificateFlags& flags) {
  W5XDE_CHECK(flags.check());
  W5XDE_TRY(Identity self, flags.certificate.empty() ? Identity::load_or_make(folder.path())
                                                     : Identity::open(flags.certificate, flags.key));
  W5XDE_TRY(TlsContext tls, TlsContext::server(self, flags.authority));
  W5XDE_CHECK(GuestList::change(folder.invitations(), add_first_ones));
  return Protection{std::move(self), std::move(tls)};
}

Result<GuestList::Entry> new_invitation(Role role, std::uint64_t uses) {
  GuestList::Entry entry{.role = role, .uses = uses};
  W5XDE_CHECK(fill_with_random(entry.id));
  W5XDE_CHECK(fill_with_random(entry.secret));
  return entry;
}

Address address_for_others(Address address) {
  if (address.host == "0.0.0.0" || address.host == "::") address.host = host_name();
  return address;
}

}  // namespace w5xde
