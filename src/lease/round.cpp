#include "lease/round.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "lease/tuning.h"

namespace w5xde {

// Where nobody waits for anybody (async) there is no step to make shorter: all work.
Round::Round(const Options& options)
    : options_(options),
      steps_(options),
      roster_({.fastest = options.fastest && options.mode == Mode::sync, .lanes = options.lanes}) {}

void Round::grow(std::uint64_t step, std::uint32_t slots) {
  assert(options_.mode == Mode::sync && (drained() || step > steps_.training().back().number));
  steps_.slots().grow(step, slots);
}

// ---- Nodes

void Round::join(NodeId node, const Place& place, double swap_in_seconds) {
  look_at_all_ = true;
  roster_.join(node, place, swap_in_seconds);
}

void Round::leave(NodeId node) {
  if (roster_.find(node) == nullptr) return;
  look_at_all_ = true;
  roster_.leave(node);
  slots_leased_again_ += steps_.release(node);
}

void Round::caught_up(NodeId node) {
  roster_.clear_late(roster_.at(node));
  roster_.set_up_to_date(node, true);
  look_at_all_ = true;
}

void Round::set_leaving(NodeId node) {
  roster_.set_leaving(node);
  look_at_all_ = true;
}

std::size_t Round::nodes_on_time() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(roster_.members(), [](const auto& entry) { return entry.second.present(); }));
}

// ---- Answers

// An answer, good or bad: it is not late any more, and may get its next lease.
void Round::heard_from(NodeId node) {
  roster_.clear_late(roster_.at(node));
  answered_.push_back(node);
  ++answers_since_;
}

Round::Verdict Round::answer(NodeId node, LeaseId lease, SlotBlock block, const Computing& computing,
                             Instant now) {
  Member* member = roster_.find(node);
  if (member == nullptr || lease == 0 || lease >= next_lease_) return Verdict::unknown;
  const auto found = std::ranges::find(member->held, lease, &Grant::lease);
  if (found != member->held.end() && found->block != block) return Verdict::unknown;
  heard_from(node);
  if (found == member->held.end()) {
    // Leased once (lease numbers are never reused), and void since: its step was committed without it.
    ++duplicates_dropped_;
    if (member->missed && member->missed->lease == lease) {
      const Grant missed = *std::exchange(member->missed, std::nullopt);
      member->pace.measure(missed, steps_.begun(missed), computing, now);
    }
    return Verdict::duplicate;
  }
  const Grant grant = *found;
  member->held.erase(found);
  member->pace.measure(grant, steps_.begun(grant), computing, now);
  Step* step = steps_.find(grant.work, grant.step);
  if (step == nullptr || !step->ledger.answer(block)) {
    ++duplicates_dropped_;
    return Verdict::duplicate;
  }
  if (options_.mode == Mode::async && grant.work == Work::train && step->ledger.complete())
    steps_.close(grant.step);
  return Verdict::accepted;
}

bool Round::awaits(NodeId node, LeaseId lease) const {
  if (!holds(node, lease) || drained()) return false;
  const Step& front = steps_.training().front();
  const Grant grant = *std::ranges::find(roster_.at(node).held, lease, &Grant::lease);
  const auto& entries = front.ledger.entries();
  const auto at = entries.find(grant.block.first_slot);
  return grant.is_of(front.work, front.number) && at != entries.end() && !at->second.answered;
}

bool Round::holds(NodeId node, LeaseId lease) const {
  const auto at = roster_.members().find(node);
  return at != roster_.members().end() && std::ranges::count(at->second.held, lease, &Grant::lease) > 0;
}

Round::Rejection Round::reject(NodeId node, LeaseId lease, SlotBlock block, Next next) {
  Member* member = roster_.find(node);
  if (member == nullptr) return Rejection::unknown;
  roster_.clear_late(*member);  // it has answered, if not well
  look_at_all_ = true;
  const auto found = std::ranges::find(member->held, lease, &Grant::lease);
  if (found == member->held.end() || found->block != block) return Rejection::unknown;
  const Grant grant = *found;
  member->held.erase(found);
  Step* step = steps_.find(grant.work, grant.step);
  if (step == nullptr) return Rejection::unknown;
  if (step->ledger.entries().at(block.first_slot).answered) return Rejection::settled;
  slots_leased_again_ += step->ledger.reject(block, lease);
  if (next == Next::another) refusals_.push_back({node, grant.step, block});
  return Rejection::leased_again;
}

// ---- Steps

bool Round::front_ends_soon() const {
  if (options_.mode != Mode::sync || drained() || steps_.training().front().ledger.open_slots() > 0)
    return false;
  return std::ranges::any_of(roster_.members(), [&](const auto& entry) {
    return entry.second.works() && entry.second.holding(Work::train, front_step()).leases == 0;
  });
}

void Round::commit(Instant now) {
  assert(options_.mode == Mode::sync && front_complete());
  const Instant begun = steps_.training().front().begun;
  const auto is_unused = [&](const auto& entry) {
    return entry.second.works() && entry.second.held.empty() && entry.second.pace.answered_at < begun;
  };
  // They share the time, so that one of them is tried equally often, however many they are.
  const auto unused = static_cast<double>(std::ranges::count_if(roster_.members(), is_unused));
  for (auto& entry : roster_.members()) {
    if (is_unused(entry)) entry.second.pace.unused_seconds += seconds_of(now - begun) / unused;
  }
  const auto is_over = [&](const Grant& grant) { return grant.is_of(Work::train, front_step()); };
  for (auto& [node, member] : roster_.members()) {
    // A newcomer that others did not wait for: it gets more when it has answered.
    if (const auto missed = std::ranges::find_if(member.held, is_over);
        missed != member.held.end() && !member.pace.measured()) {
      member.missed = *missed;
      Roster::set_late(member);
    }
    std::erase_if(member.held, is_over);
  }
  if (committed_at_ != Instant()) roster_.step_done(seconds_of(now - committed_at_), slots_of(front_step()));
  committed_at_ = now;
  look_at_all_ = true;
  steps_.close_front(now);
}

void Round::begin_evaluation(std::uint32_t slots, Instant now, std::uint32_t lease_slots_max) {
  roster_.disturbed();
  look_at_all_ = true;
  steps_.evaluation().emplace(
      Step{.work = Work::evaluate, .begun = now, .ledger = Ledger(slots, lease_slots_max)});
}

void Round::end_evaluation() {
  // What a slow node still holds of it must not answer the next one.
  for (auto& [node, member] : roster_.members())
    std::erase_if(member.held, [](const Grant& grant) { return grant.work == Work::evaluate; });
  steps_.evaluation().reset();
  look_at_all_ = true;
}

void Round::hold(bool held) {
  held_ = held;
  look_at_all_ = true;
}

void Round::pause_training(bool paused) {
  look_at_all_ = look_at_all_ || paused != paused_;
  paused_ = paused;
}

void Round::open_steps(Instant now) {
  if (held_) return;
  if (options_.mode == Mode::sync) {
    while (steps_.training().size() < 2 && !steps_.all_opened()) {
      // Turns end between steps: who has begun with one goes on with it.
      roster_.rotate(now, kLeasesPerTurn);
      steps_.open(now);
    }
    return;
  }
  std::uint64_t open_slots = 0;
  for (const Step& step : steps_.training()) open_slots += step.ledger.open_slots();
  while (open_slots < nodes() * options_.slots && !steps_.all_opened()) {
    steps_.open(now);
    open_slots += steps_.training().back().ledger.open_slots();
    steps_.drop_complete_back();
  }
}

std::string Round::imbalance() const {
  const auto look_at = [&](const Step& step) -> std::string {
    const Ledger& ledger = step.ledger;
    std::uint32_t next = 0, open = 0, answered = 0;
    for (const auto& [first, entry] : ledger.entries()) {
      if (first != next || entry.block.first_slot != first) break;
      next = entry.block.end();
      if (entry.open()) open += entry.block.slot_count;
      if (entry.answered) answered += entry.block.slot_count;
      for (const Grant& grant : entry.holders) {
        if (entry.answered || !grant.is_of(step.work, step.number) || grant.block != entry.block ||
            !holds(grant.node, grant.lease))
          return fmt::format("nobody holds lease {}", grant.lease);
      }
    }
    if (next == ledger.slots() && open == ledger.open_slots() && answered == ledger.answered_slots())
      return {};
    return fmt::format("the slots of step {} do not add up", step.number);
  };
  std::string wrong = steps_.evaluation() ? look_at(*steps_.evaluation()) : "";
  for (const Step& step : steps_.training()) wrong = wrong.empty() ? look_at(step) : wrong;
  return wrong;
}

// ---- Shares

// In how many seconds the node will have answered what it holds of a step, or could answer if it holds
// nothing. Of a step ahead: counted from its begin. Where all are alike, measured lags are noise.
double Round::ready_in(const Member& member, const Step& step, double seconds_per_slot, bool alike,
                       Instant now) const {
  const Pace& pace = member.pace;
  const Member::Holding holding = member.holding(step.work, step.number);
  const double leases = holding.leases;
  const double first_lag = pace.trust() * (!alike && pace.first_lag > 0 ? pace.first_lag : pace.step_seconds);
  const double next_lag = alike ? 0 : pace.next_lag;
  const double computing = holding.slots * seconds_per_slot;
  if (is_ahead(step)) return first_lag + computing + std::max(0.0, leases - 1) * next_lag;
  const Instant leased = holding.first == nullptr ? now : holding.first->since;
  const double exchange = pace.trust() * std::min(pace.exchange_seconds, pace.step_seconds);
  const bool first = pace.answered_at < step.begun;
  const double from = first ? seconds_of(step.begun - now) + first_lag : seconds_of(pace.answered_at - now);
  const double lag = std::max(0.0, leases - (first ? 1 : 0)) * next_lag;
  return std::max(0.0, std::max(from, seconds_of(leased - now) + exchange) + computing + lag);
}

std::vector<Share> Round::candidates(const Step& step, Instant now) const {
  const double mean = roster_.mean_seconds_per_slot();
  double slowest = 0, fastest = 0, cheapest = std::numeric_limits<double>::infinity();
  for (const auto& [node, member] : roster_.members()) {
    const Pace& pace = member.pace;
    if (member.works()) cheapest = std::min(cheapest, pace.exchange_seconds);
    if (pace.seconds_per_slot == 0) continue;
    slowest = std::max(slowest, pace.seconds_per_slot);
    fastest = fastest == 0 ? pace.seconds_per_slot : std::min(fastest, pace.seconds_per_slot);
  }
  const bool alike = slowest < kNoiseRatio * fastest;
  std::vector<Share> shares;
  for (const auto& [node, member] : roster_.members()) {
    if (!member.works()) continue;
    const Pace& pace = member.pace;
    const Member::Holding holding = member.holding(step.work, step.number);
    Share share{.node = node,
                // Until slots are measured, a slot counts as a second: see Share::seconds_per_slot.
                .ready_seconds = static_cast<double>(holding.slots),
                .holds_some = holding.leases > 0,
                .cold = !pace.warm() && member.held.empty()};
    if (mean > 0) {
      share.seconds_per_slot =
          !alike && pace.seconds_per_slot > 0 ? pace.trust() * pace.seconds_per_slot : mean;
      share.ready_seconds = ready_in(member, step, share.seconds_per_slot, alike, now);
    }
    // Leases of others cost less: this node's must be worth theirs.
    const double exchange = pace.trust() * pace.exchange_seconds;
    if (options_.grain == 0 && cheapest < kClearlyLess * exchange)
      share.slots_min =
          static_cast<std::uint32_t>(std::min(std::ceil(exchange / share.seconds_per_slot), 1e9));
    shares.push_back(share);
  }
  return shares;
}

// How many more slots a node may be given now. Leases of later steps do not use up room for this one: they
// cannot be answered before this step is done.
std::uint32_t Round::capacity_of(const Member& member, const Step& step, std::uint32_t lanes) const {
  std::uint32_t slots = 0, leases = 0;
  for (const Grant& grant : member.held) {
    const bool later = grant.work == Work::train && grant.step > steps_.front();
    if (later && !grant.is_of(step.work, step.number)) continue;
    slots += grant.block.slot_count;
    ++leases;
  }
  const Pace& pace = member.pace;
  if (!member.present()) return 0;
  if (pace.seconds_per_slot == 0) {
    const std::uint32_t most = std::max(kWarmUp, lanes);
    return slots < most ? most - slots : 0;
  }
  double seconds_max = kHorizonSeconds;
  if (std::isfinite(pace.exchange_seconds))
    seconds_max = std::max(seconds_max, pace.exchange_seconds / kSmallPart);
  if (leases >= 2 && slots * pace.seconds_per_slot >= 2 * seconds_max) return 0;
  return static_cast<std::uint32_t>(std::clamp<double>(seconds_max / pace.seconds_per_slot, lanes, 1e6));
}

// It has enough work until its next lease; the rest stays open for others.
bool Round::supplied(const Member& member, const Step& step) {
  const Member::Holding holding = member.holding(step.work, step.number);
  if (holding.first == nullptr) return false;
  const std::uint32_t more = holding.slots - holding.first->block.slot_count;
  return more * member.pace.seconds_per_slot >
         kExchangesAhead * std::max(member.pace.exchange_seconds, member.pace.next_lag);
}

// Cuts what is open of a step into one share for each node, and gives each node some of its own in large
// blocks. The share of one that cannot take it yet stays open for it.
void Round::share_out(Step& step, Instant now, To to, std::vector<Grant>& grants) {
  if (step.ledger.open_slots() == 0) return;
  auto shares = apportion(candidates(step, now), step.ledger.open_slots());
  workers_ = roster_.working();
  if (to == To::far && workers_ > 0) {
    const double even_slots = step.ledger.slots() / static_cast<double>(workers_);
    std::erase_if(shares, [&](const Share& share) {
      return roster_.at(share.node).pace.step_seconds <= kSmallPart * even_slots * share.seconds_per_slot;
    });
  }
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
  if (step.work != Work::train || step.number != front_step()) return;
  for (const Share& share : shares) {
    Member& member = roster_.at(share.node);
    member.planned = share;
    member.planned_for = step.number;
  }
}

// False: the node gets no more of its share now.
bool Round::lease_some(Share& share, Step& step, Instant now, std::vector<Grant>& grants) {
  const Member& member = roster_.at(share.node);
  Grant grant = next_grant(share.node, step, now);
  // Alone, it has nobody to leave anything to.
  const bool alone = workers_ == 1;
  const std::uint32_t portion = alone ? share.slots : member.pace.portion_of(share.slots, grant.lanes);
  const std::uint32_t capacity = capacity_of(member, step, grant.lanes);
  if (share.slots == 0 || capacity == 0 || (!alone && supplied(member, step))) return false;
  const std::uint32_t slots = options_.grain > 0 ? options_.grain : std::min(portion, capacity);
  // An idle node takes any block, even a small one.
  const std::uint32_t slots_min = member.holding(step.work, step.number).leases > 0 ? share.slots_min : 1;
  if (!step.ledger.lease(slots, grant, slots_min)) return false;
  share.slots -= std::min(share.slots, grant.block.slot_count);
  give(grant, grants);
  return true;
}

// ---- Grants

std::vector<Grant> Round::grants(Instant now) {
  std::vector<Grant> grants;
  const std::vector<NodeId> answered = std::exchange(answered_, {});
  if (nodes() == 0) return grants;
  if (look_at_all_ || nodes() <= kFewNodes || answers_since_ * kLooksPerAnswer >= nodes() ||
      now - looked_at_all_ >= kTick / 2) {
    looked_at_all_ = now;
    look_at_all_ = false;
    answers_since_ = 0;
    grant_to_all(now, grants);
  } else {
    for (const NodeId node : answered) grant_as_planned(node, now, grants);
  }
  return grants;
}

void Round::grant_to_all(Instant now, std::vector<Grant>& grants) {
  open_steps(now);
  // sync: in the middle of a step only the place of a node that is lost is taken.
  roster_.rotate(now, options_.mode == Mode::async ? kLeasesPerTurn : UINT64_MAX);
  ask_others(now, grants);
  auto& steps = steps_.training();
  if (options_.mode == Mode::async) {
    if (steps_.evaluation()) share_out(*steps_.evaluation(), now, To::all, grants);
    for (auto& [node, member] : roster_.members()) top_up(node, member, now, grants);
  } else {
    roster_.choose_team(slots_of(front_step()));
    if (!steps.empty()) share_out(steps.front(), now, To::all, grants);
    if (steps_.evaluation()) share_out(*steps_.evaluation(), now, To::all, grants);
    // Ahead: only when nothing is left to begin of the step that everybody waits for.
    if (steps.size() > 1) {
      const bool begun = steps.front().ledger.open_slots() == 0;
      share_out(steps.back(), now, begun ? To::all : To::far, grants);
    }
  }
  help_stragglers(now, grants);
}

void Round::grant_as_planned(NodeId node, Instant now, std::vector<Grant>& grants) {
  Member* member = roster_.find(node);
  if (member == nullptr) return;
  if (options_.mode == Mode::async) return top_up(node, *member, now, grants);
  if (drained() || member->planned_for != front_step() || !member->works()) return;
  Step& front = steps_.training().front();
  while (front.ledger.open_slots() > 0 && lease_some(member->planned, front, now, grants)) {
    // Nothing is left to begin: now leases of the next step go out.
    look_at_all_ = front.ledger.open_slots() == 0;
  }
}

// async: nobody waits for anybody, so a node gets its next lease when it has answered its last but one.
void Round::top_up(NodeId node, Member& member, Instant now, std::vector<Grant>& grants) {
  while (!paused_ && member.works() && member.held.size() < 2) {
    const auto open = std::ranges::find_if(steps_.training(),
                                           [](const Step& step) { return step.ledger.open_slots() > 0; });
    if (open == steps_.training().end()) {
      look_at_all_ = true;  // more steps may be opened
      return;
    }
    Grant grant = next_grant(node, *open, now);
    open->ledger.lease(async_lease_slots(member.pace.seconds_per_slot, options_.slots, options_.grain),
                       grant);
    give(grant, grants);
  }
}

// The node that is free first computes a block whose answer was refused, whether it works or not: that shows
// whether the run goes on. Where nobody else is there, the block is shared out as any other.
void Round::ask_others(Instant now, std::vector<Grant>& grants) {
  std::erase_if(refusals_,
                [&](const Refusal& refusal) { return steps_.find(Work::train, refusal.step) == nullptr; });
  for (Refusal& refusal : refusals_) {
    if (std::exchange(refusal.asked, true)) continue;
    Step& step = *steps_.find(Work::train, refusal.step);
    const auto& members = roster_.members();
    auto best = members.end();
    for (auto entry = members.begin(); entry != members.end(); ++entry) {
      if (!entry->second.present() || was_refused(refusals_, entry->first, refusal.step, refusal.block))
        continue;
      if (best == members.end() || entry->second.held_slots() < best->second.held_slots()) best = entry;
    }
    if (best == members.end()) continue;
    Grant grant = next_grant(best->first, step, now);
    grant.block = refusal.block;
    if (step.ledger.lease_block(grant)) give(grant, grants);
  }
}

// What late nodes and newcomers hold goes to idle nodes as well. The first answer counts.
void Round::help_stragglers(Instant now, std::vector<Grant>& grants) {
  const Straggler* helpless = nullptr;  // nobody has time for blocks of its kind
  const auto stragglers = find_stragglers(roster_, steps_, options_.mode == Mode::sync, now);
  for (const Straggler& straggler : stragglers) {
    if (helpless != nullptr && helpless->step == straggler.step && helpless->late == straggler.late) continue;
    if (is_expected(straggler, roster_)) continue;
    const auto helper = helper_for(straggler, roster_, refusals_);
    if (!helper) {
      helpless = &straggler;
      continue;
    }
    Grant grant = next_grant(*helper, *straggler.step, now);
    grant.block = straggler.block;
    straggler.step->ledger.lease_again(grant);
    if (straggler.step->work == Work::train) slots_leased_again_ += straggler.block.slot_count;
    give(grant, grants);
  }
}

Grant Round::next_grant(NodeId node, const Step& step, Instant now) const {
  return {.node = node,
          .lease = next_lease_,
          .since = now,
          .work = step.work,
          .step = step.number,
          .block = {},
          .lanes = roster_.lanes(roster_.at(node))};
}

void Round::give(const Grant& grant, std::vector<Grant>& grants) {
  ++next_lease_;
  Member& member = roster_.at(grant.node);
  member.held.push_back(grant);
  Roster::leased(member, grant.block.slot_count);
  grants.push_back(grant);
}

}  // namespace w5xde
