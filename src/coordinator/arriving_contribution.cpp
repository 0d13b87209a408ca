#include "coordinator/arriving_contribution.h"

#include <fmt/format.h>

#include <utility>

#include "base/errors.h"
#include "learn/learner.h"
#include "w5xde/no_gradient.h"

namespace w5xde {

namespace {

constexpr double kWorthTelling = 1.01;  // times smaller

// A lossy codec may round what is small to -0.0, which would say that there is no gradient.
void mark_gradients(const Target& part) {
  const FloatRange range = part.range();
  auto* floats = reinterpret_cast<float*>(part.raw.data());
  for (const auto& entry : part.block->parameters->entries()) {
    if (entry.shape.elements() > 0 && entry.offset >= range.first && entry.offset < range.end())
      mark_gradient(floats[entry.offset - range.first]);
  }
}

}  // namespace

Status ArrivingContribution::check_floats(const Contribution& contribution, const BlockShape& shape) const {
  const std::uint64_t floats = shape.floats;
  if (contribution.tensors.size() != 1 || contribution.tensors[0].dtype != DType::f32 ||
      contribution.tensors[0].shape.elements() == 0 || contribution.first_float > floats ||
      contribution.tensors[0].shape.elements() > floats - contribution.first_float) {
    return corrupt("a contribution that is not one tensor of {} f32", floats);
  }
  return {};
}

Status ArrivingContribution::check_whole(const Contribution& contribution, const BlockShape& shape) const {
  W5XDE_CHECK(check_floats(contribution, shape));
  if (contribution.first_float > 0 || contribution.tensors[0].shape.elements() != shape.floats)
    return corrupt("a part of a contribution where all of it is in shared memory");
  return {};
}

Status ArrivingContribution::check_order(const Contribution& contribution) const {
  const bool goes_on = contribution.first_float > 0 && contribution.lease_id == lease_;
  if (contribution.first_float != (goes_on ? landed_floats_ : 0) || (!goes_on && landed_floats_ > 0))
    return corrupt("a contribution with a hole in it");
  return {};
}

Target ArrivingContribution::place(const Contribution& contribution, const BlockShape& shape,
                                   const std::function<Reduction::Buffer()>& take_buffer) {
  lease_ = contribution.lease_id;
  if (!buffer_) buffer_ = take_buffer();
  return target(contribution, shape);
}

Target ArrivingContribution::target(const Contribution& contribution, const BlockShape& shape) const {
  return {{buffer_->data() + contribution.first_float * sizeof(float), contribution.tensors[0].byte_count()},
          contribution.tensors,
          &shape,
          contribution.first_float};
}

void ArrivingContribution::landed(const FrameHeader& header, const Contribution& contribution,
                                  const BlockShape& shape) {
  const Target part = target(contribution, shape);
  if (contribution.coding.form == Form::gradient) mark_gradients(part);
  const std::uint64_t part_floats = contribution.tensors[0].shape.elements();
  if (contribution.first_float == 0) {
    // The last part may be too small for any codec.
    lossless_ = static_cast<LosslessKind>(header.codec);
    finite_ = true;
  }
  // One that comes whole is looked at later, beside the loop if it is large.
  if (part_floats < shape.floats) {
    const std::span<const float> here(reinterpret_cast<const float*>(part.raw.data()), part_floats);
    finite_ = finite_ && all_finite(here);
  }
  landed_floats_ += part_floats;
  landed_bytes_ += header.payload_bytes;
}

Reduction::Buffer ArrivingContribution::take() {
  landed_floats_ = 0;
  const auto bytes = static_cast<double>(std::exchange(landed_bytes_, 0));
  bytes_ = bytes_ == 0 ? bytes : 0.8 * bytes_ + 0.2 * bytes;
  return std::move(buffer_);
}

std::string ArrivingContribution::describe(const BlockShape& shape) const {
  const std::string_view lossless = lossless_ == LosslessKind::none ? "uncompressed" : name_of(lossless_);
  const double times = bytes_ > 0 ? static_cast<double>(shape.floats * sizeof(float)) / bytes_ : 1;
  if (times < kWorthTelling) return std::string(lossless);
  return fmt::format("{}; in all {:.2f}x smaller than floats", lossless, times);
}

}  // namespace w5xde
