#include "lease/round.h"

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
// Of few nodes, all are looked at with every answer. Of more, so often that each is looked at this many times
// for every answer that it gives, and after this long in any case.
constexpr std::size_t kFewNodes = 32;
constexpr std::size_t kLooksANode = 8;
constexpr Duration kLookAtAllEvery = std::chrono::milliseconds(10);

}  // namespace

std::uint32_t async_lease_slots(double seconds_per_slot, std::uint32_t slots_max, std::uint32_t grain) {
  if (grain > 0) return grain;
  const double wanted = seconds_per_slot == 0 ? 1 : kAsyncLeaseSeconds / seconds_per_slot;
  return std::bit_floor(static_cast<std::uint32_t>(std::clamp<double>(wanted, 1, slots_max)));
}

Round::Round(const Options& options)
    : options_(options),
      step_slots_({.slots = options.slots,
                   .first_step = options.first_step,
                   .first_slot = options.first_slot,
                   .slots_total = options.slots_total,
                   .steps_total = options.steps_total}),
      front_step_(options.first_step),
      next_step_(options.first_step) {
  // Where nobody waits for anybody, there is no step to make shorter.
  if (options_.mode == Mode::async) options_.crews = false;
}

void Round::grow(std::uint64_t step, std::uint32_t slots) {
  assert(options_.mode == Mode::sync && (steps_.empty() || step > steps_.back().number));
  step_slots_.grow(step, slots);
}

Ledger Round::ledger_of(std::uint64_t step) const {
  const std::uint32_t slots = slots_of(step);
  const std::uint32_t half = std::max(1u, std::bit_ceil(slots) / 2);
  Ledger ledger(slots, options_.halves ? std::min(half, options_.lease_slots_max) : options_.lease_slots_max);
  const std::uint64_t first = step_slots_.first_slot_of(step);
  for (const auto& [from, end] : options_.slots_ahead) {
    for (std::uint64_t slot = std::max(from, first); slot < std::min(end, first + slots); ++slot)
      ledger.skip(static_cast<std::uint32_t>(slot - first));
  }
  return ledger;
}

bool Round::next_step_past_end() const {
  return slots_of(next_step_) == 0;
}

void Round::join(NodeId node, const Place& place) {
  look_at_all_ = true;
  nodes_[node].host = place.host;
  turns_.join(node, place);
  if (options_.crews && options_.dear && !guessed_from_) crew_.probe();
  crew_.disturbed();
}

void Round::leave(NodeId node) {
  if (nodes_.erase(node) == 0) return;
  look_at_all_ = true;
  turns_.leave(node);
  crew_.disturbed();
  for (Step& step : steps_) slots_leased_again_ += step.ledger.release(node);
  if (evaluation_) evaluation_->ledger.release(node);
}

void Round::caught_up(NodeId node) {
  nodes_.at(node).behind = nodes_.at(node).late = false;
  look_at_all_ = true;
}

Round::Step* Round::step_of(Work work, std::uint64_t number) {
  if (work == Work::evaluate) return evaluation_ ? &*evaluation_ : nullptr;
  const auto found = std::ranges::lower_bound(steps_, number, {}, &Step::number);
  return found == steps_.end() || found->number != number ? nullptr : &*found;
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
  answered_.push_back(id);
  ++answers_since_;
  const auto found = std::ranges::find(node->second.held, lease, &Held::lease);
  if (found == node->second.held.end()) {
    // Leased once (lease numbers are never reused), and void since: its step was committed without it.
    ++duplicates_dropped_;
    node->second.late = false;
    if (node->second.missed && node->second.missed->lease == lease)
      measure(node->second, *std::exchange(node->second.missed, std::nullopt), computing, now);
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
  if (options_.mode == Mode::async && held.work == Work::train && step->ledger.complete()) {
    steps_.erase(std::ranges::lower_bound(steps_, held.step, {}, &Step::number));
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
  const auto node = nodes_.find(id);
  if (node == nodes_.end()) return;
  node->second.late = false;
  answered_.push_back(id);
  ++answers_since_;
}

bool Round::holds(NodeId id, LeaseId lease) const {
  const auto node = nodes_.find(id);
  return node != nodes_.end() &&
         std::ranges::find(node->second.held, lease, &Held::lease) != node->second.held.end();
}

Round::Rejection Round::reject(NodeId id, LeaseId lease, SlotBlock block, Next next) {
  const auto node = nodes_.find(id);
  if (node == nodes_.end()) return Rejection::unknown;
  // It has answered, if not well.
  node->second.late = false;
  look_at_all_ = true;
  const auto found = std::ranges::find(node->second.held, lease, &Held::lease);
  if (found == node->second.held.end() || found->block != block) return Rejection::unknown;
  const Held held = *found;
  node->second.held.erase(found);
  Step* step = step_of(held.work, held.step);
  if (step == nullptr) return Rejection::unknown;
  if (step->ledger.entries().at(block.first_slot).answered) return Rejection::settled;
  const std::uint32_t opened = step->ledger.reject(block, lease);
  slots_leased_again_ += opened;
  if (next == Next::another) refused_.push_back({.by = id, .step = held.step, .block = block});
  return Rejection::leased_again;
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
    const auto is_over = [&](const Held& held) {
      return held.work == Work::train && held.step == front_step_;
    };
    // A newcomer that others did not wait for: it gets more when it has answered.
    if (const auto missed = std::ranges::find_if(node.held, is_over);
        missed != node.held.end() && !node.measured()) {
      node.missed = *missed;
      node.late = true;
    }
    std::erase_if(node.held, is_over);
  }
  if (options_.crews && committed_at_ != Instant()) {
    crew_rotates_ = crew_takes_turns();
    crew_.step_done(seconds_of(now - committed_at_), crew_pool());
  }
  committed_at_ = now;
  look_at_all_ = true;
  steps_.pop_front();
  ++front_step_;
  if (!steps_.empty()) steps_.front().begun = now;
}

std::string Round::imbalance() const {
  const auto look_at = [this](const Step& step) -> std::string {
    if (!step.ledger.balanced()) return "the slots of step " + std::to_string(step.number) + " do not add up";
    for (const auto& at : step.ledger.entries()) {
      const Ledger::Entry& entry = at.second;
      for (const Ledger::Holder& holder : entry.holders) {
        const auto node = nodes_.find(holder.node);
        const bool held =
            node != nodes_.end() && std::ranges::any_of(node->second.held, [&](const Held& lease) {
              return lease.lease == holder.lease && lease.block == entry.block && lease.is_of(step);
            });
        if (!held) return "nobody holds lease " + std::to_string(holder.lease);
      }
    }
    return {};
  };
  for (const Step& step : steps_) {
    if (std::string wrong = look_at(step); !wrong.empty()) return wrong;
  }
  return evaluation_ ? look_at(*evaluation_) : std::string();
}

void Round::begin_evaluation(std::uint32_t slots, Instant now, std::uint32_t lease_slots_max) {
  crew_.disturbed();
  look_at_all_ = true;
  evaluation_.emplace(Step{.work = Work::evaluate, .begun = now, .ledger = Ledger(slots, lease_slots_max)});
}

void Round::end_evaluation() {
  // What a slow node still holds of it must not answer the next one.
  for (auto& [id, node] : nodes_) {
    std::erase_if(node.held, [](const Held& held) { return held.work == Work::evaluate; });
  }
  evaluation_.reset();
  look_at_all_ = true;
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
    open_slots += steps_.back().ledger.open_slots();
    if (steps_.back().ledger.complete()) steps_.pop_back();
  }
  front_step_ = steps_.empty() ? next_step_ : steps_.front().number;
}

void Round::take_turns(Instant now, std::uint64_t leases_min) {
  turns_.set_at_once(nodes_at_once());
  turns_.advance(now, leases_min, [this](NodeId id) { return nodes_.at(id).late; });
}

bool Round::must_look_at_all(Instant now) const {
  return look_at_all_ || nodes_.size() <= kFewNodes || answers_since_ * kLooksANode >= nodes_.size() ||
         now - looked_at_all_ >= kLookAtAllEvery;
}

std::vector<Grant> Round::grants(Instant now) {
  std::vector<Grant> grants;
  const std::vector<NodeId> answered = std::exchange(answered_, {});
  if (nodes_.empty()) return grants;
  if (must_look_at_all(now)) {
    looked_at_all_ = now;
    look_at_all_ = false;
    answers_since_ = 0;
    grant_to_all(now, grants);
  } else {
    for (const NodeId id : answered) grant_as_planned(id, now, grants);
  }
  return grants;
}

void Round::grant_to_all(Instant now, std::vector<Grant>& grants) {
  open_steps(now);
  // sync: in the middle of a step only the place of a node that is lost is taken.
  take_turns(now, options_.mode == Mode::async ? kLeasesATurn : UINT64_MAX);
  ask_others(now, grants);
  if (options_.mode == Mode::async) {
    if (evaluation_) share_out(*evaluation_, now, To::all, grants);
    for (auto& [id, node] : nodes_) top_up(id, node, now, grants);
  } else {
    choose_crew();
    if (!steps_.empty()) share_out(steps_.front(), now, To::all, grants);
    if (evaluation_) share_out(*evaluation_, now, To::all, grants);
    // Ahead: only when nothing is left to begin of the step that everybody waits for.
    if (steps_.size() > 1) {
      const bool begun = steps_.front().ledger.open_slots() == 0;
      share_out(steps_.back(), now, begun ? To::all : To::far, grants);
    }
  }
  help_stragglers(now, grants);
}

void Round::grant_as_planned(NodeId id, Instant now, std::vector<Grant>& grants) {
  const auto found = nodes_.find(id);
  if (found == nodes_.end()) return;
  Node& node = found->second;
  if (options_.mode == Mode::async) return top_up(id, node, now, grants);
  if (steps_.empty() || node.planned_for != steps_.front().number || !takes_part(id, node)) return;
  Ledger& ledger = steps_.front().ledger;
  while (ledger.open_slots() > 0 && lease_some(node.planned, steps_.front(), now, grants)) {
    // Nothing is left to begin: now leases of the next step go out.
    look_at_all_ = ledger.open_slots() == 0;
  }
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

bool Round::has_refused(NodeId id, std::uint64_t step, SlotBlock block) const {
  return std::ranges::any_of(refused_, [&](const Refused& refused) {
    return refused.by == id && refused.step == step && refused.block.overlaps(block);
  });
}

std::size_t Round::nodes_on_time() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [](const auto& member) { return !member.second.late; }));
}

// Whoever is free first, whether it takes part or not: what this shows decides whether the run goes on. Where
// nobody else is there, the block is shared out as any other.
void Round::ask_others(Instant now, std::vector<Grant>& grants) {
  std::erase_if(refused_,
                [&](const Refused& refused) { return step_of(Work::train, refused.step) == nullptr; });
  for (Refused& refused : refused_) {
    if (std::exchange(refused.asked, true)) continue;
    Step& step = *step_of(Work::train, refused.step);
    auto best = nodes_.end();
    for (auto node = nodes_.begin(); node != nodes_.end(); ++node) {
      if (node->second.late || has_refused(node->first, refused.step, refused.block)) continue;
      if (best == nodes_.end() || node->second.held_slots() < best->second.held_slots()) best = node;
    }
    if (best == nodes_.end()) continue;
    if (!step.ledger.lease_block(refused.block, {best->first, next_lease_, now})) continue;
    grants.push_back(grant(best->first, step, refused.block, next_lease_++, now));
  }
}

// async: nobody waits for anybody, so a node gets its next lease when it has answered its last but one.
void Round::top_up(NodeId id, Node& node, Instant now, std::vector<Grant>& grants) {
  while (!paused_ && !node.late && !turns_.rests(id) && node.held.size() < 2) {
    const auto open =
        std::ranges::find_if(steps_, [](const Step& step) { return step.ledger.open_slots() > 0; });
    if (open == steps_.end()) {
      look_at_all_ = true;  // more steps may be opened
      return;
    }
    const std::uint32_t slots = async_lease_slots(node.seconds_per_slot, options_.slots, options_.grain);
    const LeaseId lease = next_lease_++;
    const auto block = open->ledger.lease(slots, {id, lease, now});
    grants.push_back(grant(id, *open, *block, lease, now));
  }
}

}  // namespace w5xde
