// w5xde invite: who may come to a run, also while it goes on.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/errors.h"
#include "base/hex.h"
#include "commands/command.h"
#include "local_pool/protection.h"
#include "local_pool/route.h"
#include "record/run_folder.h"
#include "settings.h"

namespace w5xde {

namespace {

struct InviteCommand {
  std::string run;
  std::string name;
  std::uint64_t uses = 1;
  std::string expires;
  std::string role = "node";
  std::string address;
  std::string revoke;
  bool list = false;
};

std::int64_t now() {
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

// "7d", "12h", "30m", "90s"
Result<std::int64_t> seconds_in(const std::string& text) {
  constexpr std::int64_t kYearsMax = 100LL * 365 * 24 * 3600;
  const auto unit_seconds = [](char unit) -> std::int64_t {
    return unit == 'd' ? 24 * 3600 : unit == 'h' ? 3600 : unit == 'm' ? 60 : unit == 's' ? 1 : 0;
  };
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool has_unit = error == std::errc() && end + 1 == text.data() + text.size();
  const std::int64_t unit = has_unit ? unit_seconds(*end) : 0;
  if (unit == 0 || count <= 0 || count > kYearsMax / unit)
    return invalid("--expires: '{}': use a number and s, m, h or d, as 7d or 12h", text);
  return count * unit;
}

std::string date_text(std::int64_t seconds) {
  const std::time_t then = seconds;
  std::tm parts{};
  localtime_r(&then, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

void print(const GuestList& guests) {
  fmt::print("{:<24} {:<9} {:<12} {:<17} {}\n", "name", "role", "machines", "expires", "state");
  for (const GuestList::Entry& entry : guests.entries()) {
    const std::string uses = entry.uses == 0 ? "any number" : std::to_string(entry.uses);
    const bool expired = entry.expires && *entry.expires <= now();
    const bool used_up = entry.uses > 0 && entry.identities.size() >= entry.uses;
    fmt::print("{:<24} {:<9} {:<12} {:<17} {}\n", entry.name, name_of(entry.role),
               fmt::format("{} of {}", entry.identities.size(), uses),
               entry.expires ? date_text(*entry.expires) : "never",
               entry.revoked ? "revoked"
               : expired     ? "expired"
               : used_up     ? "used up"
                             : "open");
  }
}

// Where the run can be reached: as it is said, or as its coordinator has said it last.
Result<Address> address_of(const InviteCommand& options, const RunFolder::Owner& owner) {
  if (!options.address.empty()) return parse_address(options.address);
  if (owner.address.empty())
    return invalid(
        "nobody has served {} yet: do that first, or say where it will be with --address HOST:PORT",
        options.run);
  W5XDE_TRY(Address address, parse_address(owner.address));
  return address_for_others(std::move(address));
}

Result<Digest> certificate_of(const RunFolder& folder, const RunFolder::Owner& owner) {
  Digest certificate{};
  if (parse_hex(owner.certificate, certificate)) return certificate;
  W5XDE_TRY(const Identity identity, Identity::load_or_make(folder.path()));
  return identity.fingerprint();
}

Status invite(const InviteCommand& options) {
  W5XDE_TRY(const RunFolder folder, RunFolder::look(options.run));
  const RunFolder::Owner owner = folder.owner();
  W5XDE_TRY(const Role role, parse_role(options.role));
  W5XDE_TRY(const Address address, address_of(options, owner));
  W5XDE_TRY(const Digest certificate, certificate_of(folder, owner));
  W5XDE_TRY(GuestList::Entry entry, new_invitation(role, options.uses));
  if (!options.expires.empty()) {
    W5XDE_TRY(const std::int64_t seconds, seconds_in(options.expires));
    entry.expires = now() + seconds;
  }
  W5XDE_CHECK(GuestList::change(folder.invitations(), [&](GuestList& guests) {
    entry.name = options.name.empty() ? guests.free_name(role) : options.name;
    return guests.add(entry);
  }));
  if (owner.has_it && owner.certificate.empty())
    std::fprintf(stderr,
                 "w5xde: the run is served without TLS now, where no invitation is needed; serve it with "
                 "--listen HOST:PORT and without --insecure, or with --tls\n");
  fmt::print("w5xde {} {}\n", role == Role::node ? "join" : "status",
             invitation_of(entry, address, certificate).to_string());
  return {};
}

Status run(const InviteCommand& options) {
  if (!options.list && options.revoke.empty()) return invite(options);
  W5XDE_TRY(const RunFolder folder, RunFolder::look(options.run));
  if (!options.revoke.empty()) {
    W5XDE_CHECK(GuestList::change(folder.invitations(),
                                  [&](GuestList& guests) { return guests.revoke(options.revoke); }));
  }
  if (!options.list) return {};
  W5XDE_TRY(const GuestList guests, GuestList::read(folder.invitations()));
  print(guests);
  return {};
}

}  // namespace

void add_invite(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("invite", "Let a machine or an observer come to a run.");
  const auto options = std::make_shared<InviteCommand>();
  command->add_option("RUN", options->run, "The run folder")->required();
  command->add_option("--name", options->name, "What the invitation is called; by default node-1, node-2, …");
  command->add_option("--uses", options->uses, "How many machines may come with it; 0: any number");
  command->add_option("--expires", options->expires, "After this time no other machine may, as 7d or 12h");
  only(command->add_option("--role", options->role,
                           "node: compute; observer: ask for the status; owner: both"),
       {"node", "observer", "owner"});
  command->add_option("--address", options->address,
                      "HOST:PORT, where the coordinator is known by another name");
  command->add_flag("--list", options->list, "Show the invitations that there are");
  command->add_option("--revoke", options->revoke,
                      "Let nobody in with this invitation, and send away who is in");
  command->footer(
      "Examples:\n"
      "  w5xde invite runs/a --name desk --expires 7d\n"
      "  w5xde invite runs/a --revoke desk");
  command->callback([options, &code] { code = exit_code(run(*options)); });
}

}  // namespace w5xde
