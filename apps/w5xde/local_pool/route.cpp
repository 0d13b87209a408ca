#include "local_pool/route.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>

#include "base/errors.h"
#include "base/hex.h"
#include "local_pool/protection.h"
#include "record/run_folder.h"
#include "settings.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;

// What this user's programs keep between two runs of them.
Result<fs::path> state_folder() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state != '\0')
    return fs::path(state) / "w5xde";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".local/state/w5xde";
  return invalid("there is no place for this machine's key: set HOME or XDG_STATE_HOME to a folder");
}

Result<Identity> identity_of_machine(const CertificateFlags& flags) {
  if (!flags.certificate.empty()) return Identity::open(flags.certificate, flags.key);
  W5XDE_TRY(const fs::path folder, state_folder());
  return Identity::load_or_make(folder);
}

std::string first_line_of(const fs::path& file) {
  std::string line;
  std::ifstream stream(file);
  constexpr std::streamsize kCharsMax = 1024;
  line.resize(kCharsMax);
  stream.read(line.data(), kCharsMax);
  line.resize(static_cast<std::size_t>(stream.gcount()));
  return line.substr(0, line.find_first_of("\r\n"));
}

}  // namespace

Status CertificateFlags::check() const {
  if (certificate.empty() == key.empty()) return {};
  return invalid("--certificate and --key belong together; give --{} too",
                 key.empty() ? "key" : "certificate");
}

void add_certificate_flags(CLI::App& command, CertificateFlags& flags, const std::string& authority_help) {
  command
      .add_option("--certificate", flags.certificate,
                  "A certificate of your own, PEM; by default one is made")
      ->group(kPoolGroup);
  command.add_option("--key", flags.key, "The key of --certificate, PEM")->group(kPoolGroup);
  command.add_option("--authority", flags.authority, authority_help)->group(kPoolGroup);
}

Result<Route> Route::find(const std::string& target, const CertificateFlags& flags) {
  W5XDE_CHECK(flags.check());
  Route route{.authority = flags.authority};
  std::error_code ignored;
  const bool is_file = fs::is_regular_file(target, ignored);
  const std::string text = is_file ? first_line_of(target) : target;
  if (is_file || text.starts_with(kInvitationScheme)) {
    auto invitation = parse_invitation(text);
    if (!invitation.ok())
      return is_file ? std::move(invitation).error().within(target) : std::move(invitation).error();
    route.address = invitation->address;
    route.invitation = text;
  } else {
    W5XDE_TRY(route.address, parse_address(text));
  }
  if (route.invitation.empty() && route.authority.empty()) return route;
  W5XDE_TRY(const Identity self, identity_of_machine(flags));
  route.certificate = self.certificate_file();
  route.key = self.key_file();
  return route;
}

Result<Route> Route::to_owner(const fs::path& run, const Address& address) {
  Route route{.address = address};
  W5XDE_TRY(const RunFolder folder, RunFolder::look(run));
  const RunFolder::Owner owner = folder.owner();
  if (owner.certificate.empty()) return route;
  Digest certificate{};
  if (!parse_hex(owner.certificate, certificate))
    return corrupt("the lock of {} names no certificate", run.string());
  W5XDE_TRY(const GuestList guests, GuestList::read(folder.invitations()));
  const GuestList::Entry* entry = guests.find(kOwnersName);
  if (entry == nullptr)
    return invalid("{} has no invitation '{}'", folder.invitations().string(), kOwnersName);
  route.invitation = invitation_of(*entry, address, certificate).to_string();
  W5XDE_TRY(const Identity self, Identity::load_or_make(run));
  route.certificate = self.certificate_file();
  route.key = self.key_file();
  return route;
}

Result<std::optional<Route::Keys>> Route::keys() const {
  if (invitation.empty() && authority.empty()) return std::optional<Keys>();
  std::optional<Invitation> parsed;
  if (!invitation.empty()) {
    W5XDE_TRY(parsed, parse_invitation(invitation));
  }
  W5XDE_TRY(const Identity self, Identity::open(certificate, key));
  W5XDE_TRY(TlsContext tls, authority.empty() ? TlsContext::client(self, parsed->certificate)
                                              : TlsContext::client(authority, address.host, &self));
  return std::optional<Keys>({std::move(tls), self.name(), std::move(parsed)});
}

Result<std::string> join_over(const Route& route, JoinOptions options, const Log& log) {
  W5XDE_TRY(auto keys, route.keys());
  if (keys) {
    options.tls = std::move(keys->tls);
    options.node.identity = std::move(keys->identity);
    options.node.invitation = std::move(keys->invitation);
  }
  return join(std::move(options), log);
}

Invitation invitation_of(const GuestList::Entry& entry, const Address& address, const Digest& certificate) {
  return {.address = address, .id = entry.id, .secret = entry.secret, .certificate = certificate};
}

}  // namespace w5xde
