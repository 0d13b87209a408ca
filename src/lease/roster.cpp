#include "lease/roster.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "lease/tuning.h"

namespace w5xde {

std::string_view name_of(Standing standing) {
  constexpr std::string_view kNames[] = {"standby", "catching up", "working", "late", "leaving"};
  return kNames[static_cast<std::size_t>(standing)];
}

std::uint32_t Member::held_slots() const {
  std::uint32_t slots = 0;
  for (const Grant& grant : held) slots += grant.block.slot_count;
  return slots;
}

Member::Holding Member::holding(Work work, std::uint64_t step) const {
  Holding holding;
  for (const Grant& grant : held) {
    if (!grant.is_of(work, step)) continue;
    if (holding.leases++ == 0) holding.first = &grant;
    holding.slots += grant.block.slot_count;
  }
  return holding;
}

void Roster::join(NodeId node, const Place& place, double swap_in_seconds) {
  Member& member = members_[node];
  member.place = place;
  member.pace.swap_in_seconds = swap_in_seconds;
  // A node that needs no cores (a GPU has them) shares none.
  if (place.lanes == 0) member.place.machine.clear();
  if (!member.place.machine.empty()) {
    Machine& machine = machines_[place.machine];
    machine.lanes = std::max(machine.lanes, place.lanes);
    // A node that joins later is owed nothing for the time before.
    for (const NodeId other : machine.nodes) {
      const std::uint64_t theirs = members_.at(other).slots_leased;
      member.slots_leased = other == machine.nodes.front() ? theirs : std::min(member.slots_leased, theirs);
    }
    machine.nodes.push_back(node);
    member.resting = machine.nodes.size() > places(machine);
  }
  if (options_.fastest && swap_in_seconds > kShortSeconds && !estimated_from_) team_.probe();
  team_.disturbed();
  member.standing = standing_of(member);
}

void Roster::leave(NodeId node) {
  const auto found = members_.find(node);
  if (found == members_.end()) return;
  if (const auto machine = machines_.find(found->second.place.machine); machine != machines_.end()) {
    std::erase(machine->second.nodes, node);
    if (machine->second.nodes.empty()) machines_.erase(machine);
  }
  members_.erase(found);
  team_.disturbed();
}

Member* Roster::find(NodeId node) {
  const auto found = members_.find(node);
  return found == members_.end() ? nullptr : &found->second;
}

Standing Roster::standing_of(const Member& member) const {
  if (!member.present()) return member.standing;
  if (limited()) {
    if (member.in_team) return Standing::working;
    return member.standing == Standing::catching_up ? Standing::catching_up : Standing::standby;
  }
  if (member.resting) return Standing::standby;
  return member.up_to_date ? Standing::working : Standing::catching_up;
}

void Roster::set_up_to_date(NodeId node, bool up_to_date) {
  Member& member = members_.at(node);
  member.up_to_date = up_to_date;
  if (!limited()) member.standing = standing_of(member);
}

void Roster::set_late(Member& member) {
  if (member.present()) member.standing = Standing::late;
}

void Roster::clear_late(Member& member) {
  if (member.standing != Standing::late) return;
  member.standing = Standing::standby;
  member.standing = standing_of(member);
}

void Roster::leased(Member& member, std::uint32_t slots) {
  member.slots_leased += slots;
  ++member.leases_this_turn;
}

std::size_t Roster::working() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(members_, [](const auto& entry) { return entry.second.works(); }));
}

std::uint32_t Roster::lanes(const Member& member) const {
  const auto machine = machines_.find(member.place.machine);
  if (machine == machines_.end()) return std::max(1u, member.place.lanes);
  const auto working = static_cast<std::uint32_t>(count(machine->second, &Member::works));
  return std::max(1u, machine->second.lanes / std::max(1u, working));
}

double Roster::mean_seconds_per_slot(bool of_working) const {
  double speed = 0, measured = 0;
  for (const auto& [node, member] : members_) {
    if (member.pace.seconds_per_slot == 0 || (of_working && !member.works())) continue;
    speed += 1 / member.pace.seconds_per_slot;
    ++measured;
  }
  return measured > 0 ? measured / speed : 0;
}

// ---- Turns

std::size_t Roster::count(const Machine& machine, bool (Member::*is)() const) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(machine.nodes, [&](NodeId other) { return (members_.at(other).*is)(); }));
}

// How many of a machine's nodes work at once.
std::size_t Roster::places(const Machine& machine) const {
  if (!limited() || !team_rotates_) return machine.lanes;
  const std::size_t machines = std::max<std::size_t>(1, machines_.size());
  return std::min<std::size_t>((team_.size() + machines - 1) / machines, machine.lanes);
}

bool Roster::turn_over(const Machine& machine, const std::vector<NodeId>& present, Instant now,
                       std::uint64_t leases_min) const {
  std::size_t working = 0;
  bool served = true;
  for (const NodeId node : present) {
    const Member& member = members_.at(node);
    if (member.resting) continue;
    ++working;
    served = served && member.leases_this_turn >= leases_min;
  }
  const std::size_t wanted = std::min(places(machine), present.size());
  // Where fewer work than could, turns are shorter, so that all nodes have worked equally much equally soon.
  const double turn = kTurnSeconds * static_cast<double>(wanted) / machine.lanes;
  return working != wanted ||
         (present.size() > wanted && served && now - machine.turn_began >= duration_of(turn));
}

void Roster::rotate(Instant now, std::uint64_t leases_min) {
  for (auto& [name, machine] : machines_) {
    std::vector<NodeId> present;
    std::ranges::copy_if(machine.nodes, std::back_inserter(present),
                         [this](NodeId node) { return members_.at(node).present(); });
    if (!turn_over(machine, present, now, leases_min)) continue;
    std::ranges::sort(present, {},
                      [&](NodeId node) { return std::tuple(members_.at(node).slots_leased, node); });
    for (std::size_t i = 0; i < present.size(); ++i) {
      Member& member = members_.at(present[i]);
      member.resting = i >= places(machine);
      member.leases_this_turn = 0;
    }
    machine.turn_began = now;
  }
  for (auto& [node, member] : members_) member.standing = standing_of(member);
}

// ---- The team

std::size_t Roster::workers() const {
  std::size_t workers = 0;
  for (const auto& [node, member] : members_)
    workers += !machines_.contains(member.place.machine) && member.present() ? 1U : 0U;
  for (const auto& [name, machine] : machines_)
    workers += std::min<std::size_t>(machine.lanes, count(machine, &Member::present));
  return workers;
}

bool Roster::expensive_swap_ins() const {
  return std::ranges::any_of(
      members_, [](const auto& entry) { return entry.second.pace.swap_in_seconds > kShortSeconds; });
}

TeamSize::Pool Roster::pool(std::uint32_t step_slots) const {
  // Of those who work: others were measured when they had other cores, perhaps.
  const double mean = mean_seconds_per_slot(true);
  TeamSize::Pool pool{.workers = workers(),
                      .compute_seconds = step_slots * (mean > 0 ? mean : mean_seconds_per_slot())};
  std::set<std::string> links, machines;
  std::uint32_t lanes = 1;
  for (const auto& [node, member] : members_) {
    if (member.works()) lanes = std::max(lanes, member.pace.lanes);
    if (member.pace.seconds_per_slot > 0)
      pool.exchange_seconds = std::max(pool.exchange_seconds, member.pace.step_seconds);
    if (!may_work(member)) continue;
    // A node of which no address and no machine is known has its own.
    const Place& place = member.place;
    links.insert(place.host.empty() ? std::to_string(node) : place.host);
    machines.insert(machines_.contains(place.machine) ? place.machine : std::to_string(node));
  }
  pool.links = std::max<std::size_t>(1, links.size());
  pool.machines = std::max<std::size_t>(1, machines.size());
  // One node has no use for all of a machine's cores where its share is done sooner than lanes are woken.
  const double share_seconds = pool.compute_seconds * lanes / static_cast<double>(pool.machines);
  if (!options_.lanes || share_seconds <= kShortSeconds)
    pool.machines = std::max<std::size_t>(1, pool.workers);
  return pool;
}

// An unmeasured node is assumed to be as fast as the slowest other one behind the same link. A link that
// nobody was measured behind is tried first.
double Roster::whole_step_seconds(const Member& member, std::uint32_t step_slots) const {
  const auto seconds = [&](const Pace& pace) {
    return pace.step_seconds + step_slots * pace.seconds_per_slot;
  };
  if (member.pace.seconds_per_slot > 0) return seconds(member.pace);
  double longest = 0;
  for (const auto& [node, other] : members_) {
    if (other.pace.seconds_per_slot > 0 && other.place.host == member.place.host)
      longest = std::max(longest, seconds(other.pace));
  }
  return longest;
}

// Those who would have a whole step done first, but one of each machine before any machine's second, which
// would halve the cores of the first. A node of the team stays where another is not clearly better: it has
// the parameters and the samples.
std::set<NodeId> Roster::best(std::size_t count, std::uint32_t step_slots) const {
  std::vector<std::tuple<double, bool, NodeId>> order;
  for (const auto& [node, member] : members_) {
    if (team_rotates_ ? may_work(member) : member.present())
      order.emplace_back(whole_step_seconds(member, step_slots) * (member.in_team ? kClearlyLess : 1),
                         !member.in_team, node);
  }
  std::ranges::sort(order);
  std::set<std::string> machines;
  std::vector<NodeId> firsts, seconds;
  for (const auto& place : order) {
    const NodeId node = std::get<NodeId>(place);
    const std::string& machine = members_.at(node).place.machine;
    const bool first = !machines_.contains(machine) || machines.insert(machine).second;
    (first ? firsts : seconds).push_back(node);
  }
  firsts.insert(firsts.end(), seconds.begin(), seconds.end());
  firsts.resize(std::min(firsts.size(), count));
  return {firsts.begin(), firsts.end()};
}

void Roster::choose_team(std::uint32_t step_slots) {
  if (options_.fastest && expensive_swap_ins() && mean_seconds_per_slot() > 0) {
    const TeamSize::Pool now = pool(step_slots);
    if (!estimated_from_ || now.exchange_seconds < kFarCheaper * *estimated_from_) {
      estimated_from_ = now.exchange_seconds;
      team_.guess(now);
    }
  }
  bool catching_up = false, changed = false;
  if (!limited()) {
    for (auto& [node, member] : members_) {
      member.standing = standing_of(member);
      catching_up = catching_up || member.standing == Standing::catching_up;
    }
    if (catching_up) team_.disturbed();
    return;
  }
  const std::set<NodeId> chosen = best(team_.size(), step_slots);
  for (auto& [node, member] : members_) {
    if (!member.present()) continue;
    const bool comes_in = !member.in_team && chosen.contains(node);
    member.standing = comes_in ? Standing::catching_up : Standing::standby;
    member.standing = standing_of(member);
    catching_up = catching_up || (comes_in && !member.up_to_date);
  }
  if (catching_up) return team_.disturbed();
  for (auto& [node, member] : members_) {
    const bool before = std::exchange(member.in_team, chosen.contains(node));
    changed = changed || before != member.in_team;
    if (member.standing == Standing::catching_up) member.standing = Standing::standby;
    member.standing = standing_of(member);
  }
  // Steps take equally long in every node's turn.
  if (changed && !team_rotates_) team_.changed();
}

void Roster::step_done(double seconds, std::uint32_t step_slots) {
  if (!options_.fastest) return;
  team_rotates_ = !expensive_swap_ins() &&
                  std::ranges::all_of(members_, [](const auto& entry) { return entry.second.up_to_date; });
  team_.step_done(seconds, pool(step_slots));
}

// ---- Reasons

std::string Roster::machine_reason(NodeId node) const {
  const auto machine = machines_.find(members_.at(node).place.machine);
  if (machine == machines_.end()) return {};
  const auto& nodes = machine->second.nodes;
  const auto works = std::ranges::find_if(nodes, [&](NodeId other) { return members_.at(other).works(); });
  if (works == nodes.end()) return {};
  const std::size_t working = count(machine->second, &Member::works);
  const std::string who = working > 1
                              ? fmt::format("{} nodes have the cores of this machine", working)
                              : fmt::format("{} computes {} this machine", members_.at(*works).place.name,
                                            limited() ? "with all cores of" : "on");
  return who + (!limited() || team_rotates_ ? "; its nodes work in turns" : "");
}

std::string Roster::reason(NodeId node) const {
  switch (members_.at(node).standing) {
    case Standing::working:
      return {};
    case Standing::late:
      return "it takes too long: it gets nothing new before it answers";
    case Standing::leaving:
      return "it said that it leaves";
    case Standing::catching_up:
      return "it is sent the parameters before it works";
    case Standing::standby:
      break;
  }
  if (std::string machine = machine_reason(node); !machine.empty()) return machine;
  if (working() == 0) return "who works in the next step is not decided yet";
  if (mean_seconds_per_slot() == 0) return "one node finds out first what a step costs";
  return fmt::format("{} of {} nodes work at a time: more at once would make a step longer{}", working(),
                     members_.size(), team_rotates_ ? "; they take turns" : "");
}

}  // namespace w5xde
