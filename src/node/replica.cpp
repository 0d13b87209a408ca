#include "node/replica.h"

#include <algorithm>

#include "base/errors.h"

namespace w5xde {

Replica::State Replica::take() {
  const auto free = std::ranges::find_if(states_, [](const State& state) { return state.use_count() == 1; });
  if (free != states_.end()) return *free;
  states_.push_back(std::make_shared<AlignedBuffer>(shape_.floats * sizeof(float)));
  return states_.back();
}

Status Replica::begin(const Parameters& parameters) {
  if (parameters.floats_total != shape_.floats)
    return corrupt("parameters of {} floats; this model has {}", parameters.floats_total, shape_.floats);
  const bool difference = parameters.base != kNoVersion;
  if (difference && state_ && state_->shared()) return corrupt("a difference to a version that is shared");
  if (difference && (!state_ || parameters.base != version_))
    return corrupt("a difference to version {}, which is not the one here", parameters.base);
  if (parameters.coding.form == Form::gradient && !difference)
    return corrupt("parameters through a gradient codec that are no difference");
  if (!landing_ || parameters.version != arriving_.version || parameters.base != arriving_.base ||
      parameters.first_float == 0) {
    landing_ = nullptr;
    landing_ = take();
    landed_floats_ = 0;
  }
  if (parameters.first_float != landed_floats_) return corrupt("parameters with a hole in them");
  return {};
}

Target Replica::target() {
  const MutableBytes raw(landing_->data() + arriving_.first_float * sizeof(float),
                         arriving_.tensors[0].byte_count());
  return {raw, arriving_.tensors, &shape_, arriving_.first_float};
}

Result<MutableBytes> Replica::place(const FrameHeader& header, Parameters parameters,
                                    PayloadReceiver& receiver) {
  W5XDE_CHECK(begin(parameters));
  arriving_ = std::move(parameters);
  return receiver.place(header, arriving_.coding, target());
}

// Element by element as the coordinator adds it, so that both have the same bits.
void Replica::add_difference(FloatRange part) {
  const auto* before = reinterpret_cast<const float*>(state_->data());
  auto* after = reinterpret_cast<float*>(landing_->data());
  const std::uint64_t end = std::min(part.end(), shape_.parameters->floats());
  for (std::uint64_t i = part.first; i < end; ++i) after[i] = before[i] + after[i];
}

void Replica::adopt(std::uint64_t version, State state) {
  state_ = std::move(state);
  version_ = version;
  landing_ = nullptr;
  states_.clear();
}

Result<bool> Replica::finish(const FrameHeader& header, Bytes payload, PayloadReceiver& receiver) {
  W5XDE_CHECK(receiver.finish(header, payload, arriving_.coding, target()));
  const FloatRange part = target().range();
  if (arriving_.base != kNoVersion) add_difference(part);
  landed_floats_ += part.count;
  if (landed_floats_ < shape_.floats) return false;
  state_ = std::move(landing_);
  landing_ = nullptr;
  version_ = arriving_.version;
  return true;
}

}  // namespace w5xde
