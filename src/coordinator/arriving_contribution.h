#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "learn/reduction.h"
#include "lease/ledger.h"
#include "payload/encoding.h"
#include "payload/form.h"
#include "wire/frame.h"
#include "wire/messages.h"

namespace w5xde {

// The floats of the contribution that a node sends just now: in one piece or in parts, in order, and all of
// one before the next. Loop thread only.
class ArrivingContribution {
 public:
  // corrupt when the contribution has other floats than the model; not all of them; or not the next ones.
  Status check_floats(const Contribution& contribution, const BlockShape& shape) const;
  Status check_whole(const Contribution& contribution, const BlockShape& shape) const;
  Status check_order(const Contribution& contribution) const;
  // Where the contribution's floats land; `take_buffer` gives memory for all of them.
  Target place(const Contribution& contribution, const BlockShape& shape,
               const std::function<Reduction::Buffer()>& take_buffer);
  Target target(const Contribution& contribution, const BlockShape& shape) const;
  // They have landed, decoded.
  void landed(const FrameHeader& header, const Contribution& contribution, const BlockShape& shape);

  std::uint64_t floats_landed() const { return landed_floats_; }
  std::span<float> values(const BlockShape& shape) {
    return {reinterpret_cast<float*>(buffer_->data()), shape.floats};
  }
  // Every number that is here is finite. What comes in one piece is not looked at.
  bool finite() const { return finite_; }
  // All of it is here.
  Reduction::Buffer take();

  // What a contribution takes on the wire, by the last ones; 0 while none has come.
  double bytes() const { return bytes_; }
  std::string describe(const BlockShape& shape) const;

 private:
  Reduction::Buffer buffer_;
  LeaseId lease_ = 0;
  std::uint64_t landed_floats_ = 0;
  std::uint64_t landed_bytes_ = 0;  // that travelled
  bool finite_ = true;
  LosslessKind lossless_ = LosslessKind::none;  // of the last one
  double bytes_ = 0;
};

}  // namespace w5xde
