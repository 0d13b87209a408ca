#include "coordinator/round.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <utility>

namespace w5xde {

namespace {

// An estimate is a mean over about this long, whatever a lease takes: a node that was preempted for once must
// not get a smaller share, one that is really slower must.
constexpr double kMeanSeconds = 2;
constexpr double kSmoothingMin = 0.005, kSmoothingMax = 0.3;
// async: leases are as long as this, where slots are short: a frame a slot would cost more than the slot.
constexpr double kAsyncLeaseSeconds = 0.004;
// So that a turn is long beside what nodes still hold when it ends, and beside the cold start of those that
// follow.
constexpr std::uint64_t kLeasesATurn = 16;
// How much longer than usual makes a node late; never before the floor, which is many a scheduler's slice.
constexpr double kLateFactor = 4;
constexpr double kLateSeconds = 0.1;
constexpr double kLateSecondsUnmeasured = 5;

}  // namespace

std::uint32_t async_lease_slots(double seconds_per_slot, std::uint32_t slots_max, std::uint32_t grain) {
  if (grain > 0) return grain;
  const double wanted = seconds_per_slot == 0 ? 1 : kAsyncLeaseSeconds / seconds_per_slot;
  return std::bit_floor(static_cast<std::uint32_t>(std::clamp<double>(wanted, 1, slots_max)));
}

Round::Round(const Options& options)
    : options_(options),
      step_slots_({options.slots, options.slots_total, options.steps_total}),
      front_step_(options.first_step),
      next_step_(options.first_step) {
  // Where nobody waits for anybody, there is no step to make shorter.
  if (options_.mode == Mode::async) options_.crews = false;
}

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

void Round::grow(std::uint64_t step, std::uint32_t slots) {
  assert(options_.mode == Mode::sync && (steps_.empty() || step > steps_.back().number));
  step_slots_.grow(step, slots);
}

Ledger Round::ledger_of(std::uint64_t step) const {
  const std::uint32_t slots = slots_of(step);
  return options_.halves ? Ledger(slots, std::max(1u, std::bit_ceil(slots) / 2)) : Ledger(slots);
}

bool Round::next_step_past_end() const {
  return slots_of(next_step_) == 0;
}

void Round::join(NodeId node, const Place& place) {
  nodes_[node].host = place.host;
  turns_.join(node, place);
  if (options_.crews && options_.dear && !guessed_from_) crew_.probe();
  crew_.disturbed();
}

void Round::leave(NodeId node) {
  if (nodes_.erase(node) == 0) return;
  turns_.leave(node);
  crew_.disturbed();
  for (Step& step : steps_) slots_leased_again_ += step.ledger.release(node);
  if (evaluation_) evaluation_->ledger.release(node);
}

void Round::caught_up(NodeId node) {
  nodes_.at(node).behind = nodes_.at(node).late = false;
}

Round::Step* Round::step_of(Work work, std::uint64_t number) {
  if (work == Work::evaluate) return evaluation_ ? &*evaluation_ : nullptr;
  const auto found = std::ranges::find(steps_, number, &Step::number);
  return found == steps_.end() ? nullptr : &*found;
}

void Round::measure(Node& node, const Held& held, const Computing& computing, Instant now) {
  const Step* step = step_of(held.work, held.step);
  const Instant since = step == nullptr ? held.since : std::max(held.since, step->begun);
  const double slots = held.block.slot_count;
  // Evaluating a slot is no measure of training one.
  const bool train = held.work == Work::train;
  if (train) {
    const double fading = Round::fading(node);
    for (double* estimate : {&node.seconds_per_slot, &node.first_lag, &node.next_lag}) *estimate *= fading;
    node.left_out_seconds = 0;
  }
  // A plain mean at first. The very first answer, with everything cold, is forgotten when there is a second.
  const double mean = 1.0 / static_cast<double>(std::max<std::uint64_t>(node.answers, 1));
  ++node.answers;
  const double smoothing =
      std::max(mean, std::clamp(seconds_of(now - since) / kMeanSeconds, kSmoothingMin, kSmoothingMax));
  const auto learn = [&](double& estimate, double measured) {
    estimate = estimate == 0 ? measured : estimate + smoothing * (measured - estimate);
  };
  if (train) {
    const std::uint32_t lanes = std::clamp(computing.lanes, 1u, held.lanes);
    // It has other cores than before, and it would take many leases to get over that. Where a lease was
    // merely too small for all of them, less may not mean slower: a quota may hold for all cores together.
    if (held.lanes != node.lanes_max)
      node.seconds_per_slot *= static_cast<double>(node.lanes) / static_cast<double>(lanes);
    node.lanes = lanes;
    node.lanes_max = held.lanes;
    const double measured = computing.seconds / slots;
    if (node.seconds_per_slot > 0)
      learn(node.deviation, std::min(1.0, std::abs(measured / node.seconds_per_slot - 1)));
    learn(node.seconds_per_slot, measured);
  }
  learn(node.turnaround, seconds_of(now - since) / slots);
  // Beside the computing: where it had the lease before it could begin.
  if (step != nullptr && held.since <= std::max(step->begun, node.answered_at)) {
    const bool first = node.answered_at < step->begun;
    const double busy = seconds_of(now - (first ? step->begun : node.answered_at));
    learn(first ? node.first_lag : node.next_lag, std::max(0.0, busy - computing.seconds));
  }
  node.answered_at = now;
  node.late = false;
}

Round::Verdict Round::answer(NodeId id, LeaseId lease, SlotBlock block, const Computing& computing,
                             Instant now) {
  const auto node = nodes_.find(id);
  if (node == nodes_.end() || lease == 0 || lease >= next_lease_) return Verdict::unknown;
  const auto found = std::ranges::find(node->second.held, lease, &Held::lease);
  if (found == node->second.held.end()) {
    // Leased once (lease numbers are never reused), and void since: its step was committed without it.
    ++duplicates_dropped_;
    node->second.late = false;
    return Verdict::duplicate;
  }
  const Held held = *found;
  if (held.block != block) return Verdict::unknown;
  node->second.held.erase(found);
  measure(node->second, held, computing, now);
  Step* step = step_of(held.work, held.step);
  if (step == nullptr || !step->ledger.answer(block)) {
    ++duplicates_dropped_;
    return Verdict::duplicate;
  }
  if (options_.mode == Mode::async && held.work == Work::train) {
    std::erase_if(steps_, [](const Step& open) { return open.ledger.complete(); });
    front_step_ = steps_.empty() ? next_step_ : steps_.front().number;
  }
  return Verdict::accepted;
}

bool Round::awaits(NodeId id, LeaseId lease) const {
  const auto node = nodes_.find(id);
  if (node == nodes_.end() || steps_.empty()) return false;
  const auto held = std::ranges::find(node->second.held, lease, &Held::lease);
  if (held == node->second.held.end() || !held->is_of(steps_.front())) return false;
  const auto entry = steps_.front().ledger.entries().find(held->block.first_slot);
  return entry != steps_.front().ledger.entries().end() && !entry->second.answered;
}

void Round::answered_nothing(NodeId id) {
  if (const auto node = nodes_.find(id); node != nodes_.end()) node->second.late = false;
}

bool Round::reject(NodeId id, LeaseId lease, SlotBlock block) {
  const auto node = nodes_.find(id);
  if (node == nodes_.end()) return false;
  const auto found = std::ranges::find(node->second.held, lease, &Held::lease);
  if (found == node->second.held.end() || found->block != block) return false;
  const Held held = *found;
  node->second.held.erase(found);
  if (Step* step = step_of(held.work, held.step)) slots_leased_again_ += step->ledger.reject(block, lease);
  return true;
}

bool Round::front_complete() const {
  return !steps_.empty() && steps_.front().number == front_step_ && steps_.front().ledger.complete();
}

bool Round::front_ends_soon() const {
  if (options_.mode != Mode::sync || steps_.empty() || steps_.front().ledger.open_slots() > 0) return false;
  return std::ranges::any_of(nodes_, [&](const auto& node) {
    return takes_part(node.first, node.second) && node.second.held_leases(steps_.front()) == 0;
  });
}

void Round::commit(Instant now) {
  assert(options_.mode == Mode::sync && front_complete());
  const Instant begun = steps_.front().begun;
  const auto left_out = [&](const auto& member) {
    return takes_part(member.first, member.second) && member.second.held.empty() &&
           member.second.answered_at < begun;
  };
  // However many they are, there is one to try about as often.
  const auto idle = static_cast<double>(std::ranges::count_if(nodes_, left_out));
  for (auto& member : nodes_) {
    if (left_out(member)) member.second.left_out_seconds += seconds_of(now - begun) / idle;
  }
  for (auto& [id, node] : nodes_) {
    std::erase_if(node.held,
                  [&](const Held& held) { return held.work == Work::train && held.step == front_step_; });
  }
  if (options_.crews && committed_at_ != Instant()) {
    crew_rotates_ = crew_takes_turns();
    crew_.step_done(seconds_of(now - committed_at_), crew_pool());
  }
  committed_at_ = now;
  steps_.pop_front();
  ++front_step_;
  if (!steps_.empty()) steps_.front().begun = now;
}

void Round::begin_evaluation(std::uint32_t slots, Instant now) {
  crew_.disturbed();
  evaluation_.emplace(Step{.work = Work::evaluate, .begun = now, .ledger = Ledger(slots)});
}

void Round::end_evaluation() {
  // What a slow node still holds of it must not answer the next one.
  for (auto& [id, node] : nodes_) {
    std::erase_if(node.held, [](const Held& held) { return held.work == Work::evaluate; });
  }
  evaluation_.reset();
}

void Round::open_steps(Instant now) {
  const auto open = [&] {
    // Not in the middle of a step: who has begun with it goes on.
    if (options_.mode == Mode::sync) take_turns(now, kLeasesATurn);
    steps_.push_back({.number = next_step_, .begun = now, .ledger = ledger_of(next_step_)});
    ++next_step_;
  };
  if (held_) return;
  if (options_.mode == Mode::sync) {
    while (steps_.size() < 2 && !next_step_past_end()) open();
    return;
  }
  std::uint64_t open_slots = 0;
  for (const Step& step : steps_) open_slots += step.ledger.open_slots();
  while (open_slots < nodes_.size() * options_.slots && !next_step_past_end()) {
    open();
    open_slots += steps_.back().ledger.slots();
  }
}

void Round::take_turns(Instant now, std::uint64_t leases_min) {
  turns_.set_at_once(nodes_at_once());
  turns_.advance(now, leases_min, [this](NodeId id) { return nodes_.at(id).late; });
}

std::vector<Grant> Round::grants(Instant now) {
  std::vector<Grant> grants;
  if (nodes_.empty()) return grants;
  open_steps(now);
  // sync: in the middle of a step only the place of a node that is lost is taken.
  take_turns(now, options_.mode == Mode::async ? kLeasesATurn : UINT64_MAX);
  if (options_.mode == Mode::async) {
    if (evaluation_) share_out(*evaluation_, now, To::all, grants);
    top_up(now, grants);
    for (Step& step : steps_) help_stragglers(step, now, grants);
  } else {
    choose_crew();
    if (!steps_.empty()) share_out(steps_.front(), now, To::all, grants);
    if (evaluation_) share_out(*evaluation_, now, To::all, grants);
    // Ahead: only when nothing is left to begin of the step that everybody waits for.
    if (steps_.size() > 1) {
      const bool begun = steps_.front().ledger.open_slots() == 0;
      share_out(steps_.back(), now, begun ? To::all : To::far, grants);
    }
    if (!steps_.empty()) help_stragglers(steps_.front(), now, grants);
  }
  if (evaluation_) help_stragglers(*evaluation_, now, grants);
  return grants;
}

std::uint32_t Round::lanes_of(NodeId id) const {
  return turns_.lanes(id, [this](NodeId other) { return takes_part(other); });
}

Grant Round::grant(NodeId id, const Step& step, SlotBlock block, LeaseId lease, Instant now) {
  const std::uint32_t lanes = lanes_of(id);
  nodes_.at(id).held.push_back({lease, step.work, step.number, block, now, lanes});
  turns_.leased(id, block.slot_count);
  return {id, lease, step.work, step.number, block, lanes};
}

// async: nobody waits for anybody, so a node gets its next lease when it has answered its last but one.
void Round::top_up(Instant now, std::vector<Grant>& grants) {
  for (auto& [id, node] : nodes_) {
    while (!node.late && !turns_.rests(id) && node.held.size() < 2) {
      const auto open =
          std::ranges::find_if(steps_, [](const Step& step) { return step.ledger.open_slots() > 0; });
      if (open == steps_.end()) return;
      const std::uint32_t slots = async_lease_slots(node.seconds_per_slot, options_.slots, options_.grain);
      const LeaseId lease = next_lease_++;
      const auto block = open->ledger.lease(slots, {id, lease, now});
      grants.push_back(grant(id, *open, *block, lease, now));
    }
  }
}

bool Round::overdue(const Node& node, const Held& held, const Step& step, Instant now) const {
  const double age = seconds_of(now - std::max(held.since, step.begun));
  if (node.turnaround == 0) return age > kLateSecondsUnmeasured;
  // What it holds before this block comes first.
  const double due = node.turnaround * std::max(node.held_slots(), held.block.slot_count);
  return age > std::max(kLateSeconds, kLateFactor * due);
}

// Blocks of late nodes go to idle ones as well. The first answer counts.
void Round::help_stragglers(Step& step, Instant now, std::vector<Grant>& grants) {
  if (step.ledger.open_slots() > 0 || step.ledger.complete()) return;
  std::vector<SlotBlock> blocks;
  for (auto& [id, node] : nodes_) {
    for (const Held& held : node.held) {
      if (!held.is_of(step)) continue;
      if (!node.late) node.late = overdue(node, held, step, now);
      if (node.late) blocks.push_back(held.block);
    }
  }
  for (const SlotBlock block : blocks) {
    const auto& entry = step.ledger.entries().at(block.first_slot);
    if (entry.answered || entry.holders.size() > 1) continue;
    const auto idle = std::ranges::find_if(
        nodes_, [](const auto& node) { return !node.second.late && node.second.held.empty(); });
    // Nodes that hold blocks of the step ahead are idle all the same while this one is not done.
    const auto waiting = idle != nodes_.end() ? idle : std::ranges::find_if(nodes_, [&](const auto& node) {
      return !node.second.late && std::ranges::none_of(node.second.held, [&](const Held& held) {
        return held.work == step.work && held.step <= step.number;
      });
    });
    if (waiting == nodes_.end()) return;
    const LeaseId lease = next_lease_++;
    step.ledger.lease_again(block, {waiting->first, lease, now});
    slots_leased_again_ += block.slot_count;
    grants.push_back(grant(waiting->first, step, block, lease, now));
  }
}

}  // namespace w5xde
