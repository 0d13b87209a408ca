// How much of a step each node that takes part should get.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "lease/round.h"

namespace w5xde {

namespace {

// Trying a node that a step has no slot for costs what it is left out for: not before so many times as long
// have gone by.
constexpr double kCostsBetween = 10;
constexpr double kFadingMin = 1e-6;
// Speeds closer than this count as equal, or noise would cut steps unevenly.
constexpr double kEqualSpeeds = 1.6;
constexpr double kEqualCosts = 0.1;  // of the step's time
// A node whose exchanges take this much of a step is far.
constexpr double kFarCost = 0.1;
// What a node may be given at once, and may hold, so that a late comer still finds work in a long step.
// An exchange must be little beside it all the same.
constexpr double kLeaseSecondsMax = 2;
constexpr double kLeaseExchanges = 8;
// Until a node answers and has its next lease there are two; one more is for what they take longer at times.
constexpr double kExchangesAhead = 3;
constexpr std::uint32_t kUnmeasuredSlots = 2;
// Exchanges that take no more than this part of another's cost less.
constexpr double kMuchCheaper = 0.7;

}  // namespace

std::uint32_t Round::Node::held_slots() const {
  std::uint32_t slots = 0;
  for (const Held& lease : held) slots += lease.block.slot_count;
  return slots;
}

std::uint32_t Round::Node::held_slots(const Step& step) const {
  std::uint32_t slots = 0;
  for (const Held& lease : held) {
    if (lease.is_of(step)) slots += lease.block.slot_count;
  }
  return slots;
}

std::size_t Round::Node::held_leases(const Step& step) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(held, [&](const Held& lease) { return lease.is_of(step); }));
}

double Round::mean_seconds(const std::function<bool(NodeId, const Node&)>& counts) const {
  double speed = 0, measured = 0;
  for (const auto& [id, node] : nodes_) {
    if (node.seconds_per_slot == 0 || !counts(id, node)) continue;
    speed += 1 / node.seconds_per_slot;
    ++measured;
  }
  return measured > 0 ? measured / speed : 0;
}

double Round::mean_seconds_per_slot() const {
  return mean_seconds([](NodeId, const Node&) { return true; });
}

// What a node holds of a later step, it cannot answer before this one is done: that is no reason to leave
// this one to others.
std::uint32_t Round::capacity_of(const Node& node, const Step& step, std::uint32_t lanes) const {
  std::uint32_t slots = 0, leases = 0;
  for (const Held& held : node.held) {
    if (is_ahead(held.work, held.step) && !held.is_of(step)) continue;
    slots += held.block.slot_count;
    ++leases;
  }
  if (node.late) return 0;
  if (node.seconds_per_slot == 0) {
    const std::uint32_t most = std::max(kUnmeasuredSlots, lanes);
    return slots < most ? most - slots : 0;
  }
  const double seconds_max = std::isfinite(node.exchange_seconds)
                                 ? std::max(kLeaseSecondsMax, kLeaseExchanges * node.exchange_seconds)
                                 : kLeaseSecondsMax;
  if (leases >= 2 && slots * node.seconds_per_slot >= 2 * seconds_max) return 0;
  return static_cast<std::uint32_t>(std::clamp<double>(seconds_max / node.seconds_per_slot, lanes, 1e6));
}

// What is known of a node that was left out for long may not hold any more (a machine stood still, a link was
// full), and nothing shows that unless it is tried: all that it costs counts for ever less.
double Round::fading(const Node& node) {
  if (node.left_out_seconds == 0) return 1;
  const double cost = std::max(node.first_lag, node.step_seconds) + node.seconds_per_slot;
  return std::max(kFadingMin, std::exp(-node.left_out_seconds / (kCostsBetween * cost)));
}

// In how many seconds it will have answered what it holds of a step; holding nothing, when an answer of no
// slot at all could be here. Of a step ahead: counted from its begin. Where all are alike, what they were
// measured to lag is noise.
double Round::ready_in(const Node& node, const Step& step, double seconds_per_slot, bool alike,
                       Instant now) const {
  const auto leases = static_cast<double>(node.held_leases(step));
  const double first_lag = fading(node) * (!alike && node.first_lag > 0 ? node.first_lag : node.step_seconds);
  const double next_lag = alike ? 0 : node.next_lag;
  const double computing = node.held_slots(step) * seconds_per_slot;
  if (is_ahead(step.work, step.number)) return first_lag + computing + std::max(0.0, leases - 1) * next_lag;
  const auto oldest = std::ranges::find_if(node.held, [&](const Held& held) { return held.is_of(step); });
  const Instant leased = oldest == node.held.end() ? now : oldest->since;
  const double exchange = fading(node) * std::min(node.exchange_seconds, node.step_seconds);
  const bool first = node.answered_at < step.begun;
  const double from = first ? seconds_of(step.begun - now) + first_lag : seconds_of(node.answered_at - now);
  const double lag = std::max(0.0, leases - (first ? 1 : 0)) * next_lag;
  return std::max(0.0, std::max(from, seconds_of(leased - now) + exchange) + computing + lag);
}

std::vector<Round::Share> Round::candidates(const Step& step, Instant now) const {
  const double mean = mean_seconds_per_slot();
  double slowest = 0, fastest = 0, cheapest = std::numeric_limits<double>::infinity();
  for (const auto& [id, node] : nodes_) {
    if (takes_part(id, node)) cheapest = std::min(cheapest, node.exchange_seconds);
    if (node.seconds_per_slot == 0) continue;
    slowest = std::max(slowest, node.seconds_per_slot);
    fastest = fastest == 0 ? node.seconds_per_slot : std::min(fastest, node.seconds_per_slot);
  }
  const bool alike = slowest < kEqualSpeeds * fastest;
  std::vector<Share> shares;
  for (const auto& [id, node] : nodes_) {
    if (!takes_part(id, node)) continue;
    Share share{.id = id};
    if (mean == 0) {
      share.seconds_per_slot = 1;
      share.ready = node.held_slots(step);
    } else {
      share.seconds_per_slot =
          !alike && node.seconds_per_slot > 0 ? fading(node) * node.seconds_per_slot : mean;
      share.ready = ready_in(node, step, share.seconds_per_slot, alike, now);
    }
    // Others' leases cost less: this one's must be worth theirs.
    const double exchange = fading(node) * node.exchange_seconds;
    if (options_.grain == 0 && cheapest < kMuchCheaper * exchange)
      share.slots_min =
          static_cast<std::uint32_t>(std::min(std::ceil(exchange / share.seconds_per_slot), 1e9));
    shares.push_back(share);
  }
  return shares;
}

// How many of a step's open slots each node should get, so that all finish together: (T - ready) v of them,
// where v is a node's speed, with T such that they add up.
std::vector<Round::Share> Round::shares_of(const Step& step, Instant now) const {
  auto shares = candidates(step, now);
  std::vector<Share> settled;
  std::uint32_t open = step.ledger.open_slots();
  double time = 0;
  const auto find_time = [&] {
    double speed = 0, spent = 0;
    for (const Share& share : shares) {
      speed += 1 / share.seconds_per_slot;
      spent += share.ready / share.seconds_per_slot;
    }
    time = (open + spent) / speed;
  };
  if (shares.empty()) return shares;
  find_time();
  // What differs by less than noise counts as equal, or noise would cut steps unevenly.
  const auto [least, most] = std::ranges::minmax(shares, {}, &Share::ready);
  if (most.ready - least.ready < kEqualCosts * time) {
    for (Share& share : shares) share.ready = least.ready;
  }
  for (find_time(); shares.size() > 1; find_time()) {
    // One that could not even be back in time stays out of it.
    if (std::erase_if(shares, [&](const Share& share) { return share.ready >= time; }) > 0) continue;
    const auto dear = std::ranges::find_if(shares, [&](Share& share) {
      share.take(time);
      return drop_small_blocks(share, step);
    });
    if (dear == shares.end()) break;
    open -= dear->slots;
    settled.push_back(*dear);
    shares.erase(dear);
  }
  for (Share& share : shares) {
    share.take(time);
    open -= share.slots;
  }
  // Less than a slot for each: to whoever would be done with it first.
  give_to_first_done(shares, open);
  shares.insert(shares.end(), settled.begin(), settled.end());
  return shares;
}

// How many slots of its share a node gets at once: half, so that the rest can still go to another if this one
// turns out slow; all, where by the look of its last leases it will not be off by more than an exchange
// costs. A lane without a slot would be idle.
std::uint32_t Round::portion_of(const Node& node, std::uint32_t share, std::uint32_t lanes) {
  const double half = share / 2.0;
  const double lease_seconds = std::max(node.exchange_seconds, node.next_lag);
  const bool unsure = half * node.seconds_per_slot * node.deviation > lease_seconds;
  return unsure ? std::clamp(share / 2, std::min(share, lanes), share) : share;
}

// A share is given out in blocks, of powers of two slots. False: each is worth an exchange. One that has
// nothing to do has the largest in any case.
bool Round::drop_small_blocks(Share& share, const Step& step) const {
  const bool begun = nodes_.at(share.id).held_leases(step) > 0;
  const std::uint32_t before = share.slots;
  while (share.slots > 0) {
    const std::uint32_t smallest = share.slots & -share.slots;
    if (smallest >= share.slots_min || (smallest == share.slots && !begun)) break;
    share.slots -= smallest;
  }
  return share.slots < before;
}

// One by one; of those who would be done at the same time, to the first.
void Round::give_to_first_done(std::vector<Share>& shares, std::uint32_t slots) const {
  if (slots == 0 || shares.empty()) return;
  const auto done = [&](std::size_t index) {
    const Share& share = shares[index];
    const Node& node = nodes_.at(share.id);
    // A first answer, with everything cold, says little: it gets a second chance.
    const bool cold = node.answers < 2 && node.held.empty() && share.slots == 0;
    const double seconds = cold ? 0 : share.ready + (share.slots + share.slots_min) * share.seconds_per_slot;
    return std::pair(seconds, index);
  };
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>,
                      std::greater<>>
      next;
  for (std::size_t i = 0; i < shares.size(); ++i) next.push(done(i));
  for (; slots > 0; --slots) {
    const std::size_t first = next.top().second;
    next.pop();
    ++shares[first].slots;
    next.push(done(first));
  }
}

// It has a lease to compute, and others that last until it gets more: what is open is left for whoever turns
// out to have time for it.
bool Round::supplied(const Node& node, const Step& step) const {
  const auto first = std::ranges::find_if(node.held, [&](const Held& held) { return held.is_of(step); });
  if (first == node.held.end()) return false;
  const double then = (node.held_slots(step) - first->block.slot_count) * node.seconds_per_slot;
  return then > kExchangesAhead * std::max(node.exchange_seconds, node.next_lag);
}

// Cuts what is open of a step into one share a node, and gives each node some of its own in large blocks. The
// share of one that cannot take it yet stays open for it.
void Round::share_out(Step& step, Instant now, To to, std::vector<Grant>& grants) {
  if (step.ledger.open_slots() == 0) return;
  auto shares = shares_of(step, now);
  const std::size_t workers = crew_size();
  if (to == To::far) {
    const double even_slots = step.ledger.slots() / static_cast<double>(std::max<std::size_t>(1, workers));
    std::erase_if(shares, [&](const Share& share) {
      return nodes_.at(share.id).step_seconds <= kFarCost * even_slots * share.seconds_per_slot;
    });
  }
  workers_ = workers;
  // The largest first; of equal ones, the first.
  const auto less = [&](std::size_t left, std::size_t right) {
    return std::tuple(shares[left].slots, right) < std::tuple(shares[right].slots, left);
  };
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::make_heap(order, less);
  while (step.ledger.open_slots() > 0 && !order.empty()) {
    std::ranges::pop_heap(order, less);
    if (lease_some(shares[order.back()], step, now, grants)) {
      std::ranges::push_heap(order, less);
    } else {
      order.pop_back();
    }
  }
  if (step.work != Work::train || step.number != front_step_) return;
  for (const Share& share : shares) {
    Node& node = nodes_.at(share.id);
    node.planned = share;
    node.planned_for = step.number;
  }
}

// False: the node gets no more of its share now.
bool Round::lease_some(Share& share, Step& step, Instant now, std::vector<Grant>& grants) {
  const Node& node = nodes_.at(share.id);
  const std::uint32_t lanes = lanes_of(share.id);
  // Alone, it has nobody to leave anything to.
  const bool alone = workers_ == 1;
  const std::uint32_t portion = alone ? share.slots : portion_of(node, share.slots, lanes);
  const std::uint32_t capacity = capacity_of(node, step, lanes);
  if (share.slots == 0 || capacity == 0 || (workers_ > 1 && supplied(node, step))) return false;
  const std::uint32_t slots = options_.grain > 0 ? options_.grain : std::min(portion, capacity);
  // One that has nothing to do takes what there is: others may leave it to this one.
  const std::uint32_t slots_min = node.held_leases(step) > 0 ? share.slots_min : 1;
  const auto block = step.ledger.lease(slots, {share.id, next_lease_, now}, slots_min);
  if (!block) return false;
  share.slots -= std::min(share.slots, block->slot_count);
  grants.push_back(grant(share.id, step, *block, next_lease_++, now));
  return true;
}

}  // namespace w5xde
