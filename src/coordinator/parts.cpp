// A step that is taken part by part: what is here of every slot is added up, stepped, and on its way to the
// nodes while the rest still arrives. Both directions of a link are busy then, instead of one after the
// other.
//
// Floats do not mix in a step (but in a norm, for clipping), so that the bits are the same. Nor does it
// matter who brings the rest of a block whose node is lost: a contribution is the same whoever computes it.
#include <algorithm>
#include <cmath>

#include "coordinator/coordinator.h"

namespace w5xde {

bool Coordinator::by_parts() const {
  return options_.config.steps_by_parts() && broadcast_->codec().by_chunks() && part_floats_ > 0;
}

std::vector<Landing> Coordinator::landings() const {
  std::vector<Landing> landings;
  for (const auto& [id, landing] : landings_) landings.push_back(landing);
  return landings;
}

void Coordinator::forget_landings(SlotBlock answered) {
  std::erase_if(landings_, [&](const auto& member) { return member.second.block.overlaps(answered); });
}

Status Coordinator::landing(Session& session, const Contribution& contribution, std::span<float> values,
                            std::uint64_t landed) {
  if (phase_ != Phase::training || options_.config.mode != Mode::sync) return {};
  // A step that is begun is ended, as long as it goes on, whoever brings it.
  if (stopping_ && round_->awaits(session.id(), contribution.lease_id)) stop_asked_ = loop_.now();
  // One that is not finite is dealt with when all of it is here.
  if (!std::isfinite(contribution.loss_sum) || !session.arriving_finite()) {
    forget_landing(session.id());
    return {};
  }
  if (contribution.first_float == 0) {
    const bool wanted = round_->awaits(session.id(), contribution.lease_id);
    const bool twice = std::ranges::any_of(
        landings_, [&](const auto& member) { return member.second.block.overlaps(contribution.block); });
    if (!wanted || twice) return {};
    landings_[session.id()] = {
        .block = contribution.block, .values = values, .samples = contribution.samples};
  }
  const auto found = landings_.find(session.id());
  if (found == landings_.end()) return {};
  found->second.landed = landed;
  step_parts();
  return {};
}

void Coordinator::step_parts() {
  if (busy_ || landings_.empty() || !gate_open() || !may_step() || !by_parts()) return;
  const auto landing = landings();
  Reduction::Part part = reduction_->next_part(landing);
  if (part.empty()) return;
  // Much may have landed while the gate was closed.
  const std::uint64_t last = part.first + std::max(part_floats_, options_.inline_floats);
  if (last < part.last) step_more_parts();
  part.last = std::min(part.last, last);
  if (!learner_->apply_part(reduction_->take_part(part, landing, &pool_), part.samples))
    return fail_diverged("its gradient is not finite");
  for (auto& [id, session] : sessions_) send_ahead(*session);
}

// When others have had their turn on the loop.
void Coordinator::step_more_parts() {
  loop_.cancel(parts_timer_);
  parts_timer_ = loop_.after(Duration::zero(), [this] {
    if (phase_ == Phase::training) step_parts();
  });
}

// To a node that has leases of the next step, and has taken what it was sent before: nothing piles up for it.
void Coordinator::send_ahead(Session& session) {
  if (stopping_ || busy_ || !session.is_ready() || !learner_->next() ||
      !session.has_lease_of(learner_->version() + 1))
    return;
  if (session.connection().queued_bytes() > 0) return;
  if (Status sent = session.send_ahead(*learner_, *broadcast_, codec_down()); !sent.ok())
    session.close(std::move(sent).error());
}

}  // namespace w5xde
