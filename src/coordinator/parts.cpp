#include <algorithm>
#include <cmath>

#include "coordinator/coordinator.h"

namespace w5xde {

Status Coordinator::landing(Session& session, const Contribution& contribution, std::span<float> values,
                            std::uint64_t landed) {
  if (!running() || options_.config.mode != Mode::sync) return {};
  // A step that is begun is ended, as long as it goes on, whoever brings it.
  if (stopping() && round_->awaits(session.id(), contribution.lease_id)) stop_asked_ = loop_.now();
  // One that is not finite is dealt with when all of it is here.
  if (!std::isfinite(contribution.loss_sum) || !session.arriving_finite()) {
    step_.forget_landing(session.id());
    return {};
  }
  if (contribution.first_float == 0) {
    if (!round_->awaits(session.id(), contribution.lease_id)) return {};
    step_.begin_landing(session.id(),
                        {.block = contribution.block, .values = values, .samples = contribution.samples});
  }
  if (step_.landed(session.id(), landed)) step_parts();
  return {};
}

void Coordinator::step_parts() {
  if (busy_ || step_.landings() == 0 || !gate_open() || !may_step() || !codecs_.by_parts()) return;
  Reduction::Part part = step_.next_part();
  if (part.empty()) return;
  // Much may have landed while the gate was closed.
  const std::uint64_t last = part.first + std::max(codecs_.part_floats(), options_.inline_floats);
  if (last < part.last) step_more_parts();
  part.last = std::min(part.last, last);
  if (!learner_->apply_part(step_.take_part(part), part.samples))
    return fail_diverged("its gradient is not finite");
  for (auto& [id, session] : sessions_) send_ahead(*session);
}

// When others have had their turn on the loop.
void Coordinator::step_more_parts() {
  loop_.cancel(parts_timer_);
  parts_timer_ = loop_.after(Duration::zero(), [this] {
    if (running()) step_parts();
  });
}

// To a node that has leases of the next step, and has taken what it was sent before: nothing piles up for it.
void Coordinator::send_ahead(Session& session) {
  if (stopping() || busy_ || !session.is_ready() || !learner_->next() ||
      !session.has_lease_of(learner_->version() + 1))
    return;
  if (session.connection().queued_bytes() > 0) return;
  if (Status sent = session.send_ahead(*learner_, *broadcast_, codecs_.codec_down()); !sent.ok())
    session.close(std::move(sent).error());
}

}  // namespace w5xde
