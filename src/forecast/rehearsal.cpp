#include "forecast/rehearsal.h"

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

#include "base/random.h"
#include "lease/round.h"
#include "lease/tuning.h"

namespace w5xde {

namespace {

// How much is played, as far as that changes the result: steps until every node is measured, and steps that
// count.
constexpr int kStepsBefore = 16, kStepsCounted = 48;
// By how much what is measured of a link differs from what it is: connections that share one do not get equal
// parts of it.
constexpr double kLinkUnsteadiness = 0.15;
// Nodes beside those that work. More would change nothing in who takes turns.
constexpr std::uint32_t kResting = 8;
// Who stays out of a step is chance, and lasts. Behind a link it is played several times, at most kPlaysMax;
// with many slots and nodes fewer times, because that takes long and chance evens out among them.
constexpr std::uint64_t kPlaysMax = 8, kSlotsTimesNodes = 8192;

std::uint64_t plays_of(const Rehearsal::Options& options) {
  if (options.step_seconds == 0) return 1;
  const std::uint64_t size = std::uint64_t{options.slots} * std::max(1u, options.nodes);
  return std::clamp<std::uint64_t>(kSlotsTimesNodes / size, 1, kPlaysMax);
}

class Stage {
 public:
  Stage(const Rehearsal::Options& options, std::uint64_t seed)
      : options_(options),
        round_({.mode = Mode::sync, .slots = options.slots, .grain = options.grain}),
        actors_(std::min(options.nodes, options.lanes > 0 ? options.lanes + kResting : options.slots)),
        random_(seed) {
    for (NodeId id = 0; id < actors_.size(); ++id) {
      round_.join(id, {.name = "", .machine = "theirs", .lanes = options.lanes, .host = ""});
      round_.set_exchange_seconds(id, options.exchange_seconds);
    }
  }

  Rehearsal play() {
    for (int i = 0; i < kStepsBefore; ++i) play_step();
    total_ = {};
    for (int i = 0; i < kStepsCounted; ++i) play_step();
    return {.seconds = total_.seconds / kStepsCounted,
            .contributions = total_.contributions / kStepsCounted,
            .nodes = total_.nodes / kStepsCounted};
  }

 private:
  struct Actor {
    std::deque<Grant> leases;
    Instant done;  // with what it began last
    double lease_seconds = 0;
  };

  double about(double value, double unsteadiness) {
    return value * (1 + unsteadiness * (2 * random_.unit() - 1));
  }

  void begin(Actor& actor) {
    actor.lease_seconds =
        about(actor.leases.front().block.slot_count * options_.slot_seconds, options_.unsteadiness);
    actor.done = now_ + duration_of(actor.lease_seconds);
  }

  bool computes(const Actor& actor) const {
    return !actor.leases.empty() && actor.leases.front().step == round_.front_step();
  }

  void take_leases() {
    for (const Grant& grant : round_.grants(now_)) {
      Actor& actor = actors_[grant.node];
      // One of this step may come after one of the next, and is computed first.
      const auto next = std::ranges::upper_bound(actor.leases, grant.step, {}, &Grant::step);
      const bool first = next == actor.leases.begin();
      actor.leases.insert(next, grant);
      if (first && computes(actor)) begin(actor);
    }
  }

  void answer_next() {
    Actor* next = nullptr;
    for (Actor& actor : actors_) {
      if (computes(actor) && (next == nullptr || actor.done < next->done)) next = &actor;
    }
    if (next == nullptr) {
      now_ += kTick;  // in the end somebody is late, or is no more
      return;
    }
    const Grant lease = next->leases.front();
    next->leases.pop_front();
    now_ = std::max(now_, next->done);
    const auto verdict = round_.answer(lease.node, lease.lease, lease.block, {next->lease_seconds}, now_);
    if (verdict == Round::Verdict::accepted) ++total_.contributions;
    if (computes(*next)) begin(*next);
  }

  // Whoever had a part in a step knows what that cost, with the link that all had together, though not in
  // equal parts. Whoever had none knows what it knew before, and so may stay out for long.
  void use_link(const std::set<NodeId>& busy) {
    const double seconds = static_cast<double>(busy.size()) * options_.step_seconds;
    for (const NodeId id : busy) round_.set_step_seconds(id, about(seconds, kLinkUnsteadiness));
    now_ += duration_of(seconds);  // no part of Rehearsal::seconds, but turns end meanwhile
  }

  void play_step() {
    const Instant begun = now_;
    std::set<NodeId> busy;
    for (Actor& actor : actors_) {
      // What a late node still held was done by another.
      while (!actor.leases.empty() && actor.leases.front().step < round_.front_step())
        actor.leases.pop_front();
      if (computes(actor)) begin(actor);
    }
    while (!round_.front_complete()) {
      take_leases();
      for (NodeId id = 0; id < actors_.size(); ++id) {
        if (computes(actors_[id])) busy.insert(id);
      }
      answer_next();
    }
    total_.seconds += seconds_of(now_ - begun);
    total_.nodes += static_cast<double>(busy.size());
    if (options_.step_seconds > 0) use_link(busy);
    round_.commit(now_);
  }

  Rehearsal::Options options_;
  Round round_;
  std::vector<Actor> actors_;
  Random random_;
  Instant now_;
  Rehearsal total_;
};

}  // namespace

Rehearsal Rehearsal::of(const Options& options) {
  const std::uint64_t plays = plays_of(options);
  Rehearsal mean;
  for (std::uint64_t seed = 1; seed <= plays; ++seed) {
    const Rehearsal one = Stage(options, seed).play();
    mean.seconds += one.seconds / static_cast<double>(plays);
    mean.contributions += one.contributions / static_cast<double>(plays);
    mean.nodes += one.nodes / static_cast<double>(plays);
  }
  return mean;
}

}  // namespace w5xde
