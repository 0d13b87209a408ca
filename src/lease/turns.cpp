#include "lease/turns.h"

#include <algorithm>
#include <tuple>

namespace w5xde {

namespace {

// Long enough for caches to be warm most of the time, short enough for nodes to come to the same number of
// slots within a second. Where fewer work than could, each is done sooner, so that all are as soon as before.
constexpr Duration kTurn = std::chrono::milliseconds(50);

}  // namespace

void Turns::join(NodeId node, const Place& place) {
  Member& member = members_[node];
  member.lanes = place.lanes;
  if (place.machine.empty() || place.lanes == 0) return;
  member.machine = place.machine;
  Machine& machine = machines_[place.machine];
  machine.lanes = std::max(machine.lanes, place.lanes);
  // A late comer is owed nothing for the time before.
  for (const NodeId other : machine.nodes) {
    const std::uint64_t theirs = members_.at(other).slots;
    member.slots = other == machine.nodes.front() ? theirs : std::min(member.slots, theirs);
  }
  machine.nodes.push_back(node);
  member.rests = machine.nodes.size() > places(machine);
}

void Turns::leave(NodeId node) {
  const auto found = members_.find(node);
  if (found == members_.end()) return;
  if (const auto machine = machines_.find(found->second.machine); machine != machines_.end()) {
    std::erase(machine->second.nodes, node);
    if (machine->second.nodes.empty()) machines_.erase(machine);
  }
  members_.erase(found);
}

std::size_t Turns::places(const Machine& machine) const {
  return at_once_ > 0 ? std::min<std::size_t>(at_once_, machine.lanes) : machine.lanes;
}

std::size_t Turns::workers(const std::function<bool(NodeId)>& ill) const {
  auto workers = static_cast<std::size_t>(std::ranges::count_if(
      members_, [&](const auto& entry) { return entry.second.machine.empty() && !ill(entry.first); }));
  for (const auto& [name, machine] : machines_) {
    const auto ill_ones = static_cast<std::size_t>(std::ranges::count_if(machine.nodes, ill));
    workers += std::min<std::size_t>(machine.lanes, machine.nodes.size() - ill_ones);
  }
  return workers;
}

void Turns::leased(NodeId node, std::uint32_t slots) {
  Member& member = members_.at(node);
  member.slots += slots;
  ++member.leases;
}

std::uint32_t Turns::lanes(NodeId node, const std::function<bool(NodeId)>& works) const {
  const Member& member = members_.at(node);
  const auto machine = machines_.find(member.machine);
  if (machine == machines_.end()) return std::max(1u, member.lanes);
  const auto working = static_cast<std::uint32_t>(std::ranges::count_if(machine->second.nodes, works));
  return std::max(1u, machine->second.lanes / std::max(1u, working));
}

bool Turns::turn_over(const Machine& machine, const std::vector<NodeId>& fit, Instant now,
                      std::uint64_t leases_min) const {
  std::size_t working = 0;
  bool served = true;
  for (const NodeId node : fit) {
    const Member& member = members_.at(node);
    if (member.rests) continue;
    ++working;
    served = served && member.leases >= leases_min;
  }
  const std::size_t wanted = std::min(places(machine), fit.size());
  const auto turn = kTurn * static_cast<std::int64_t>(wanted) / static_cast<std::int64_t>(machine.lanes);
  return working != wanted || (fit.size() > wanted && served && now - machine.turn_began >= turn);
}

void Turns::advance(Instant now, std::uint64_t leases_min, const std::function<bool(NodeId)>& ill) {
  for (auto& [name, machine] : machines_) {
    std::vector<NodeId> fit;
    std::ranges::remove_copy_if(machine.nodes, std::back_inserter(fit), ill);
    if (!turn_over(machine, fit, now, leases_min)) continue;
    std::ranges::sort(fit, {}, [&](NodeId node) { return std::tuple(members_.at(node).slots, node); });
    for (std::size_t i = 0; i < fit.size(); ++i) {
      Member& member = members_.at(fit[i]);
      member.rests = i >= places(machine);
      member.leases = 0;
    }
    machine.turn_began = now;
  }
}

}  // namespace w5xde
