#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "payload/form.h"
#include "payload/receiver.h"
#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

// A node's copy of the model's floats: the newest whole version, and the one that is arriving, in parts, as
// it is or as a difference. Loop thread only; any thread may read a State that it holds.
class Replica {
 public:
  using State = std::shared_ptr<AlignedBuffer>;

  explicit Replica(BlockShape shape) : shape_(std::move(shape)) {}

  // For Connection::Owner: where the payload of a parameters frame goes.
  Result<MutableBytes> place(const FrameHeader& header, Parameters parameters, PayloadReceiver& receiver);
  // True when a version is whole: state() is that one from here on.
  Result<bool> finish(const FrameHeader& header, Bytes payload, PayloadReceiver& receiver);

  // A version that is the coordinator's own memory: nothing lands here.
  void adopt(std::uint64_t version, State state);

  const State& state() const { return state_; }  // null while there is none
  std::uint64_t version() const { return version_; }
  std::uint64_t landed_floats() const { return landed_floats_; }  // of the version that came last
  const BlockShape& shape() const { return shape_; }

  // Memory that is not the newest version, nor being computed with.
  State take();

 private:
  Status begin(const Parameters& parameters);
  Target target();
  void add_difference(FloatRange part);

  BlockShape shape_;
  State state_;
  std::uint64_t version_ = 0;
  std::vector<State> states_;  // all there are, to land in again
  State landing_;
  Parameters arriving_;
  std::uint64_t landed_floats_ = 0;
};

}  // namespace w5xde
