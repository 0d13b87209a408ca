#include "coordinator/access_control.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <utility>

#include "base/errors.h"
#include "net/invitation.h"

namespace w5xde {

namespace {

constexpr auto kLookEvery = std::chrono::seconds(1);

// What tells one state of a file from the next: it is replaced as a whole, so its inode changes.
struct Stamp {
  ino_t inode = 0;
  std::int64_t written_ns = 0;
  bool operator==(const Stamp&) const = default;
};

Stamp stamp_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_ino, std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

Status check_role(const GuestList::Entry& entry, bool is_node) {
  if (is_node && entry.role == Role::observer)
    return incompatible(
        "the invitation '{}' is for an observer, who may ask for the status and not compute; ask the owner "
        "of "
        "the run for one with --role node",
        entry.name);
  if (!is_node && entry.role == Role::node)
    return incompatible(
        "the invitation '{}' is for a node, which computes and may not ask for the status; ask the owner of "
        "the "
        "run for one with --role observer",
        entry.name);
  return {};
}

}  // namespace

// The guest list as it was last read, and what is decided by it.
class AccessControl::Book {
 public:
  Book(Options options, const Log& log) : options_(std::move(options)), log_(log) {}

  Result<Role> admit(const Request& request) {
    refresh();
    const Proof& proof = request.proof;
    if (proof.invitation == InvitationId{}) {
      if (options_.authority_vouches && request.is_node) return Role::node;
      return incompatible("only who has an invitation may come in; ask the owner of the run for one");
    }
    const GuestList::Entry* entry = list_.find(proof.invitation);
    if (entry == nullptr)
      return incompatible("the invitation is not of this run; ask the owner of the run for one");
    const Digest expected = proof_of(entry->secret, request.session_secret, request.identity);
    if (request.identity.empty() || !equal_in_constant_time(expected, proof.code))
      return incompatible(
          "the invitation's secret is another one here; ask the owner of the run for an invitation");
    W5XDE_CHECK(check_role(*entry, request.is_node));
    const std::int64_t now = options_.now();
    W5XDE_CHECK(entry->check(request.identity, now));
    const Role role = entry->role;
    if (!entry->knows(request.identity)) W5XDE_CHECK(bind(proof.invitation, request.identity, now));
    return role;
  }

  // Why each of these members must go, if it must.
  std::vector<std::pair<std::uint64_t, Error>> unwelcome(
      const std::vector<std::pair<std::uint64_t, Request>>& members) {
    std::vector<std::pair<std::uint64_t, Error>> found;
    refresh();
    if (!std::exchange(changed_, false)) return found;
    for (const auto& [number, request] : members) {
      const GuestList::Entry* entry = list_.find(request.proof.invitation);
      Status status = entry != nullptr
                          ? entry->check(request.identity, options_.now())
                          : incompatible("the invitation was deleted; ask the owner of the run for another");
      if (!status.ok()) found.emplace_back(number, std::move(status).error());
    }
    return found;
  }

 private:
  void refresh() {
    const Stamp stamp = stamp_of(options_.guest_list);
    if (stamp == stamp_) return;
    auto list = GuestList::read(options_.guest_list);
    if (list.ok()) {
      list_ = *std::move(list);
      changed_ = true;
    } else {
      log_.error("{}; the invitations stay as they were read before", list.error().message);
    }
    stamp_ = stamp;
  }

  Status bind(const InvitationId& id, const std::string& identity, std::int64_t now) {
    auto list = GuestList::change(options_.guest_list,
                                  [&](GuestList& changed) { return changed.bind(id, identity, now); });
    if (list.ok()) {
      list_ = *std::move(list);
      return {};
    }
    if (list.error().kind == ErrorKind::incompatible) return std::move(list).error();
    log_.error("an invitation cannot be used: {}", list.error().message);
    return unavailable("the coordinator cannot note who comes in; its log says why");
  }

  const Options options_;
  Log log_;
  GuestList list_;
  Stamp stamp_;
  bool changed_ = false;  // since the members were looked through
};

AccessControl::AccessControl(Loop& loop, Options options, const Log& log)
    : loop_(loop), book_(std::make_shared<Book>(std::move(options), log)), background_(loop.background()) {
  arm_look();
}

AccessControl::~AccessControl() {
  loop_.cancel(look_timer_);
}

std::unique_ptr<AccessControl::Stay> AccessControl::ask(Request request,
                                                        std::function<void(Result<Role>)> answered,
                                                        std::function<void(Error)> send_away) {
  const std::uint64_t number = ++last_number_;
  const auto decision = std::make_shared<Result<Role>>(Role::node);
  background_->run([book = book_, request, decision] { *decision = book->admit(request); },
                   [this, number, decision] { decided(number, std::move(*decision)); });
  members_[number] = {std::move(request), std::move(answered), std::move(send_away)};
  return std::make_unique<Stay>(*this, number);
}

void AccessControl::decided(std::uint64_t number, Result<Role> decision) {
  const auto found = members_.find(number);
  if (found == members_.end()) return;  // it has left meanwhile
  Member& member = found->second;
  if (decision.ok()) {
    if (Status alone = check_machine(number, member.request); !alone.ok())
      decision = std::move(alone).error();
  }
  member.is_in = decision.ok();
  // The peer may be gone when this returns, and the member with it.
  const auto answered = std::move(member.answered);
  answered(std::move(decision));
}

// Several nodes of one machine share its key. A key on two machines was copied, or stolen.
Status AccessControl::check_machine(std::uint64_t number, const Request& request) const {
  if (!request.is_node) return {};
  for (const auto& [other, member] : members_) {
    const bool same_key = other != number && member.is_in && member.request.is_node &&
                          member.request.identity == request.identity;
    if (same_key && member.request.proof.machine != request.proof.machine)
      return overloaded(
          "this key is in use on another machine, at {}; each machine needs its own: delete identity.pem in "
          "the "
          "state folder here, so that a new one is made",
          member.request.host);
  }
  return {};
}

void AccessControl::arm_look() {
  look_timer_ = loop_.after(kLookEvery, [this] { look(); });
}

void AccessControl::look() {
  std::vector<std::pair<std::uint64_t, Request>> invited;
  for (const auto& [number, member] : members_) {
    if (member.is_in && member.request.proof.invitation != InvitationId{})
      invited.emplace_back(number, member.request);
  }
  if (invited.empty()) return arm_look();
  using Unwelcome = std::vector<std::pair<std::uint64_t, Error>>;
  const auto unwelcome = std::make_shared<Unwelcome>();
  background_->run(
      [book = book_, invited = std::move(invited), unwelcome] { *unwelcome = book->unwelcome(invited); },
      [this, unwelcome] {
        for (auto& [number, reason] : *unwelcome) {
          const auto found = members_.find(number);
          if (found == members_.end()) continue;
          const auto send_away = found->second.send_away;
          send_away(std::move(reason));
        }
        arm_look();
      });
}

}  // namespace w5xde
