// Who takes part in a step, and how much of it each should get.
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "coordinator/round.h"

namespace w5xde {

namespace {

// A node that a step has no slot for is not measured; its estimate gets better by this much, until it has
// one.
constexpr double kHope = 0.99;
// Speeds closer than this count as equal, or noise would cut steps unevenly.
constexpr double kEqualSpeeds = 1.6;
constexpr double kEqualCosts = 0.1;  // of the step's time
// A node whose exchanges take this much of a step is far.
constexpr double kFarCost = 0.1;
// What a node may be given at once, and may hold, so that a late comer still finds work in a long step.
constexpr double kLeaseSecondsMax = 2;
constexpr std::uint32_t kUnmeasuredSlots = 2;
// Another is better if it takes no more than this part: who is in the crew stays, having parameters and
// samples, where the difference is less.
constexpr double kMuchBetter = 0.7;

}  // namespace

double Round::mean_seconds_per_slot() const {
  double speed = 0, measured = 0;
  for (const auto& [id, node] : nodes_) {
    if (node.seconds_per_slot == 0) continue;
    speed += 1 / node.seconds_per_slot;
    ++measured;
  }
  return measured > 0 ? measured / speed : 0;
}

bool Round::takes_part(NodeId id, const Node& node) const {
  return crew_.size() > 0 ? node.in_crew && !node.late : could_work(id, node);
}

std::size_t Round::crew_size() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [&](const auto& node) { return takes_part(node.first, node.second); }));
}

Crew::Pool Round::crew_pool() const {
  Crew::Pool pool;
  std::set<std::string> links;
  for (const auto& [id, node] : nodes_) {
    if (!could_work(id, node)) continue;
    ++pool.workers;
    // Of one that is nowhere nothing is known: it has a link of its own.
    links.insert(node.host.empty() ? std::to_string(id) : node.host);
  }
  pool.links = std::max<std::size_t>(1, links.size());
  pool.compute_seconds = slots_of(front_step_) * mean_seconds_per_slot();
  for (const auto& [id, node] : nodes_) {
    if (node.seconds_per_slot > 0) pool.exchange_seconds = std::max(pool.exchange_seconds, node.step_seconds);
  }
  return pool;
}

// Of one that was never measured: as others behind its link, which come first. A link that nobody was
// measured behind is tried once.
double Round::whole_step_seconds(const Node& node) const {
  if (node.seconds_per_slot > 0) return node.step_seconds + slots_of(front_step_) * node.seconds_per_slot;
  double longest = 0;
  for (const auto& [id, other] : nodes_) {
    if (other.seconds_per_slot > 0 && other.host == node.host)
      longest = std::max(longest, whole_step_seconds(other));
  }
  return longest;
}

// Those who are in it stay; places are taken by those who would have a whole step done first.
void Round::choose_crew() {
  if (options_.crews && options_.dear && !guessed_ && mean_seconds_per_slot() > 0) {
    guessed_ = true;
    crew_.guess(crew_pool());
  }
  const std::size_t size = crew_.size();
  if (size == 0) return;
  std::vector<std::tuple<double, bool, NodeId>> fit;  // the best first
  for (const auto& [id, node] : nodes_) {
    if (!node.late)
      fit.emplace_back(whole_step_seconds(node) * (node.in_crew ? kMuchBetter : 1), !node.in_crew, id);
  }
  std::ranges::sort(fit);
  std::set<NodeId> chosen;
  for (std::size_t i = 0; i < std::min(fit.size(), size); ++i) chosen.insert(std::get<NodeId>(fit[i]));
  bool changed = false;
  for (auto& [id, node] : nodes_) {
    const bool before = std::exchange(node.in_crew, chosen.contains(id));
    changed = changed || before != node.in_crew;
  }
  if (changed) crew_.disturbed();
}

std::uint32_t Round::capacity_of(const Node& node) const {
  if (node.late) return 0;
  if (node.seconds_per_slot == 0) {
    const std::uint32_t held = node.held_slots();
    return held < kUnmeasuredSlots ? kUnmeasuredSlots - held : 0;
  }
  const double held_seconds = node.held_slots() * node.seconds_per_slot;
  if (node.held.size() >= 2 && held_seconds >= 2 * kLeaseSecondsMax) return 0;
  return static_cast<std::uint32_t>(std::clamp(kLeaseSecondsMax / node.seconds_per_slot, 1.0, 1e6));
}

// How many of so many slots each node should get, so that all finish together: where a node's speed is v and
// a step costs it c beside the computing, (T - c) v of them, with T such that they add up.
std::vector<Round::Share> Round::shares_of(double slots) const {
  const double mean = mean_seconds_per_slot();
  double slowest = 0, fastest = 0;
  for (const auto& [id, node] : nodes_) {
    if (node.seconds_per_slot == 0) continue;
    slowest = std::max(slowest, node.seconds_per_slot);
    fastest = fastest == 0 ? node.seconds_per_slot : std::min(fastest, node.seconds_per_slot);
  }
  const bool equal = slowest < kEqualSpeeds * fastest;
  std::vector<Share> shares;
  for (const auto& [id, node] : nodes_) {
    if (!takes_part(id, node)) continue;
    const bool own = !equal && node.seconds_per_slot > 0;
    shares.push_back({.id = id,
                      .seconds_per_slot = mean == 0 ? 1
                                          : own     ? node.seconds_per_slot
                                                    : mean,
                      .cost = mean == 0 ? 0 : node.step_seconds});
  }
  if (shares.empty()) return shares;
  const auto time_of = [&] {
    double speed = 0, spent = 0;
    for (const Share& share : shares) {
      speed += 1 / share.seconds_per_slot;
      spent += share.cost / share.seconds_per_slot;
    }
    return (slots + spent) / speed;
  };
  // Costs that differ by less than noise count as equal, or noise would cut steps unevenly.
  const auto [least, most] = std::ranges::minmax(shares, {}, &Share::cost);
  if (most.cost - least.cost < kEqualCosts * time_of()) {
    for (Share& share : shares) share.cost = least.cost;
  }
  // One that could not even be back in time stays out of it.
  for (double time = time_of(); shares.size() > 1; time = time_of()) {
    if (std::erase_if(shares, [&](const Share& share) { return share.cost >= time; }) == 0) break;
  }
  const double time = time_of();
  for (Share& share : shares) share.slots = (time - share.cost) / share.seconds_per_slot;
  return shares;
}

// How many slots of its share a node gets at once: half, so that the rest can still go to another if this one
// turns out slow; all, where by the look of its last leases it will not be off by more than an exchange
// costs.
double Round::portion_of(const Node& node, double share) {
  const double half = share / 2;
  return half * node.seconds_per_slot * node.deviation > node.exchange_seconds ? half : share;
}

bool Round::is_far(const Share& share, double even_slots) {
  return share.cost > kFarCost * even_slots * share.seconds_per_slot;
}

// Who has most to get; once there is less than a slot for anybody, who would be done with one first.
std::vector<Round::Share>::iterator Round::next_to_lease(const Step& step, std::vector<Share>& shares) const {
  const auto most = std::ranges::max_element(shares, {}, &Share::slots);
  if (most->slots >= 1) return most;
  const auto done_after = [&](const Share& share) {
    const Node& node = nodes_.at(share.id);
    const std::uint32_t held = node.held_slots(step);
    // A first answer, with everything cold, says little: it gets a second chance.
    if (node.answers < 2 && node.held.empty()) return std::pair(0.0, -share.slots);
    const double cost = held > 0 ? 0 : share.cost;
    return std::pair(cost + (held + 1) * share.seconds_per_slot, -share.slots);
  };
  return std::ranges::min_element(shares, {}, done_after);
}

// It has one lease to compute and one to go on with; or one, and another would cost it more than it is worth
// and somebody else less: what is open is then left for whoever has time for it.
bool Round::leaves_rest(const Node& node, const Step& step, double share, double portion) const {
  const std::size_t held = node.held_leases(step);
  if (portion < share && held >= 2) return true;
  if (held == 0 || share * node.seconds_per_slot >= node.exchange_seconds) return false;
  return std::ranges::any_of(nodes_, [&](const auto& other) {
    return takes_part(other.first, other.second) &&
           other.second.exchange_seconds < kMuchBetter * node.exchange_seconds;
  });
}

// Cuts a step into one share a node, and gives each node some of its own in large blocks. What a node holds
// of the step is part of its share; the share of one that cannot take it yet stays open for it.
void Round::share_out(Step& step, Instant now, To to, std::vector<Grant>& grants) {
  if (step.ledger.open_slots() == 0) return;
  double outstanding = step.ledger.open_slots();
  for (const auto& [id, node] : nodes_) {
    if (takes_part(id, node)) outstanding += node.held_slots(step);
  }
  auto shares = shares_of(outstanding);
  const bool alone = shares.size() == 1;
  if (to == To::far) {
    const double even_slots =
        step.ledger.slots() / static_cast<double>(std::max<std::size_t>(1, shares.size()));
    std::erase_if(shares, [&](const Share& share) { return !is_far(share, even_slots); });
  }
  for (Share& share : shares) share.slots -= nodes_.at(share.id).held_slots(step);
  while (step.ledger.open_slots() > 0 && !shares.empty()) {
    const auto next = next_to_lease(step, shares);
    const Node& node = nodes_.at(next->id);
    // Alone, it has nobody to leave the rest to.
    const double portion = alone ? next->slots : portion_of(node, next->slots);
    const std::uint32_t capacity = capacity_of(node);
    if (capacity == 0 || next->slots < 1e-6 || (!alone && leaves_rest(node, step, next->slots, portion))) {
      shares.erase(next);
      continue;
    }
    // The bit more than the share keeps 3.9999 a 4.
    const auto wanted = static_cast<std::uint32_t>(std::max(1.0, portion + 1e-6));
    const LeaseId lease = next_lease_++;
    const std::uint32_t slots = options_.grain > 0 ? options_.grain : std::min(wanted, capacity);
    const auto block = step.ledger.lease(slots, {next->id, lease, now});
    next->slots -= block->slot_count;
    grants.push_back(grant(next->id, step, *block, lease, now));
  }
  if (to == To::far) return;
  for (auto& [id, node] : nodes_) {
    if (node.held.empty() && takes_part(id, node)) node.seconds_per_slot *= kHope;
  }
}

}  // namespace w5xde
