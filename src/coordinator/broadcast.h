#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/learner.h"
#include "net/payload_codec.h"
#include "wire/messages.h"

namespace w5xde {

// Versions of the parameters on their way to the nodes: encoded and hashed once, however many they are.
//
// With a lossy codec, nodes get what changed since the version they have. What the codec loses stays in the
// difference between the parameters and what the nodes were shown, and so is said later: that difference is
// the error feedback. All nodes are shown the same, whenever they come. Loop thread only.
class Broadcast {
 public:
  Broadcast(BlockShape shape, bool generic, ThreadPool* pool);

  // For differences from here on; none: whole versions, exact.
  void set_codec(const GradientCodec& codec);
  const GradientCodec& codec() const { return codec_; }

  // Sends the learner's version to a node that was last sent version `held`, or none; `stats` counts it.
  using Lossless = PayloadSender::Lossless;
  Status send(const Learner& learner, std::uint64_t held, const Lossless& lossless, Connection& connection,
              PayloadStats& stats);

  // Whoever asks for the learner's version from here on is shown this.
  void show(const Learner& learner);
  // The next version goes out whole and exact.
  void refresh();

  // Parameters as nodes have been shown them, where that is not as they are: a checkpoint has them too, or a
  // resumed run would show others.
  std::span<const float> shown() const;
  void restore(std::span<const float> shown, const Learner& learner);

 private:
  struct Part {
    Head head;
    std::uint8_t codec = 0;
    std::uint8_t shuffle_width = 0;
    TensorView payload;
    std::shared_ptr<const void> keep;  // none: the payload is the learner's own, which must be free to change
    std::shared_ptr<std::optional<std::uint64_t>> checksum;
    std::uint64_t raw_bytes = 0;
  };
  struct Difference {
    std::uint64_t from = 0, to = 0;
    Parameters message;
    Formed formed;
    std::vector<std::pair<SectionCodec, Part>> parts;  // one for each lossless codec that was asked for
  };
  // A version as a whole, with one lossless codec.
  struct Whole {
    std::uint64_t version = 0;
    SectionCodec lossless;
    std::vector<Part> parts;
  };

  bool coded() const { return codec_.kind != GradientKind::none; }
  Difference difference_to(const Learner& learner);
  const Part& part_of(Difference& difference, const Lossless& lossless, Connection& connection);
  const Whole& whole(const Learner::State& state, std::uint64_t version, const Lossless& lossless,
                     Connection& connection);
  Part make_part(const Parameters& parameters, std::uint64_t raw_bytes, const TensorView& floats,
                 const Formed& formed, const SectionCodec& codec, LosslessPolicy* policy);
  Status send(const Part& part, const Learner::State& state, Connection& connection, PayloadStats& stats);
  std::span<float> shown_floats();

  BlockShape shape_;
  bool generic_;
  PayloadSender sender_;
  GradientCodec codec_;
  BlockEncoder encoder_;
  std::vector<float> change_;

  Learner::State shown_;  // null while nodes are shown exact versions
  Learner::State other_;  // the one before, to be written over when nobody holds it
  std::uint64_t shown_version_ = kNoVersion;
  std::deque<Difference> differences_;  // each begins where the one before ends
  std::uint64_t difference_bytes_ = 0;
  std::vector<Whole> wholes_;  // of the last version that was sent whole
};

}  // namespace w5xde
