#include "coordinator/rehearsal.h"

#include <algorithm>
#include <deque>
#include <set>
#include <vector>

#include "base/random.h"
#include "coordinator/round.h"

namespace w5xde {

namespace {

// So many steps until every node is measured, and so many that count.
constexpr int kStepsBefore = 16, kStepsCounted = 48;
constexpr auto kTick = std::chrono::milliseconds(20);

class Stage {
 public:
  explicit Stage(const Rehearsal::Options& options)
      : options_(options),
        round_({.mode = Mode::sync, .slots = options.slots, .grain = options.grain}),
        actors_(std::min(options.nodes, options.slots)) {
    for (NodeId id = 0; id < actors_.size(); ++id) {
      round_.join(id);
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

  void begin(Actor& actor) {
    const double unsteady = 1 + options_.unsteadiness * (2 * random_.unit() - 1);
    actor.lease_seconds = actor.leases.front().block.slot_count * options_.slot_seconds * unsteady;
    actor.done = now_ + duration_of(actor.lease_seconds);
  }

  bool computes(const Actor& actor) const {
    return !actor.leases.empty() && actor.leases.front().step == round_.front_step();
  }

  void take_leases() {
    for (const Grant& grant : round_.grants(now_)) {
      Actor& actor = actors_[grant.node];
      actor.leases.push_back(grant);
      if (actor.leases.size() == 1 && computes(actor)) begin(actor);
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
    const auto verdict = round_.answer(lease.node, lease.lease, lease.block, next->lease_seconds, now_);
    if (verdict == Round::Verdict::accepted) ++total_.contributions;
    if (computes(*next)) begin(*next);
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
    round_.commit(now_);
  }

  Rehearsal::Options options_;
  Round round_;
  std::vector<Actor> actors_;
  Random random_{1};
  Instant now_;
  Rehearsal total_;
};

}  // namespace

Rehearsal Rehearsal::of(const Options& options) {
  return Stage(options).play();
}

}  // namespace w5xde
