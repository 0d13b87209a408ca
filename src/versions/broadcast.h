#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "learn/learner.h"
#include "payload/block_encoder.h"
#include "payload/sender.h"
#include "wire/messages.h"

namespace w5xde {

// What a node was sent: a whole version, and the first floats of the one after.
struct SentVersion {
  std::uint64_t version = kNoVersion;
  std::uint64_t next_floats = 0;
  std::uint64_t next_bytes = 0;  // that it took
  bool next_is_difference = false;
};

// The lossless codec of what a node is sent: the one that was asked for, or for each part the one that pays.
struct PartCodecs {
  const SectionCodec* fixed = nullptr;
  std::vector<LosslessPolicy>& policies;
};

// Versions of the parameters on their way to the nodes: encoded and hashed once, however many nodes there
// are. They travel in parts, and those of the next version may leave before it is whole.
//
// With a lossy codec, nodes get what changed since the version they have. The difference between the
// parameters and what the nodes were shown is the error feedback. All nodes are shown the same. Loop thread
// only.
class Broadcast {
 public:
  struct Options {
    bool generic = false;
    std::uint64_t part_floats = 0;
  };
  Broadcast(BlockShape shape, const Options& options, ThreadPool* pool, const Clock& clock);

  // For differences from here on; none: whole versions, exact.
  void set_codec(const GradientCodec& codec);
  const GradientCodec& codec() const { return codec_; }

  // Sends what a node lacks of the learner's version; `stats` counts it.
  Status send(const Learner& learner, SentVersion& sent, PartCodecs codecs, FrameSender& link,
              PayloadStats& stats);
  // Sends what it lacks of the next version, as far as that is there, to a node that has the one before.
  Status send_ahead(const Learner& learner, SentVersion& sent, PartCodecs codecs, FrameSender& link,
                    PayloadStats& stats);

  // A node that has this version lacks no more of the learner's than any node does after a step.
  bool follows(std::uint64_t version, const Learner& learner) const;

  // Bytes of a version on its way to a node that has the one before, recently; 0 while there was none.
  double usual_bytes() const { return usual_bytes_; }

  // Nodes are shown the learner's version. To be called for every version of which parts were sent ahead.
  void show(const Learner& learner);

  // Parameters as nodes have been shown them, where that differs: a resumed run needs them too.
  std::span<const float> shown() const;
  void restore(std::span<const float> shown, const Learner& learner);

 private:
  // As it travels, with one lossless codec.
  struct Encoded {
    SectionCodec lossless;  // that was asked for
    Head head;
    std::uint8_t codec = 0;
    std::uint8_t shuffle_width = 0;
    TensorView payload;
    std::shared_ptr<const void> keep;  // none: the payload is the version's own memory
    std::shared_ptr<std::optional<std::uint64_t>> checksum;
  };
  struct Part {
    Parameters message;
    std::uint64_t raw_bytes = 0;
    TensorView floats;  // direct: the version's own memory
    Formed formed;
    std::vector<Encoded> encoded;  // one for each lossless codec that was asked for

    std::uint64_t bytes() const { return formed.direct() ? raw_bytes : formed.bytes.size(); }
  };
  // A version, or what leads to it from another; perhaps only its first parts.
  struct Parts {
    std::uint64_t from = kNoVersion, to = 0;
    GradientCodec codec = {};
    std::vector<Part> parts = {};

    std::uint64_t floats() const;
    std::uint64_t bytes() const;
  };

  // The next version goes out whole and exact.
  void refresh();
  bool coded() const { return codec_.kind != GradientKind::none; }
  Parts& whole(const Learner::State& state, std::uint64_t version, std::uint64_t floats_end);
  // Begins the difference that leads to version `to`, if need be, and makes its parts up to this float.
  void extend_difference(const Learner::State& state, std::uint64_t to, std::uint64_t floats_end);
  Part difference_of(const Learner::State& state, FloatRange range);
  void finish_difference();
  Parameters message_of(const Parts& parts, FloatRange range) const;
  const Encoded& encoded(Part& part, std::size_t number, PartCodecs codecs, FrameSender& link);
  // `state` is the memory of parts that have none of their own.
  Status send(Parts& parts, const Learner::State& state, std::uint64_t first_float, PartCodecs codecs,
              FrameSender& link, PayloadStats& stats);
  Learner::State free_memory();

  BlockShape shape_;
  Options options_;
  PayloadSender sender_;
  GradientCodec codec_;
  BlockEncoder encoder_;
  std::vector<float> change_;

  Learner::State shown_;  // null while nodes are shown exact versions
  Learner::State other_;  // the one before, to be written over when nobody holds it
  std::uint64_t shown_version_ = kNoVersion;
  std::uint64_t inexact_version_ = kNoVersion;  // the last that was shown before a refresh
  // From what is shown to the next version, as far as that is there; and what nodes are shown then.
  std::optional<Parts> next_difference_;
  Learner::State next_shown_;
  double usual_bytes_ = 0;
  std::deque<Parts> differences_;  // each begins where the one before ends
  std::uint64_t difference_bytes_ = 0;
  std::vector<Parts> wholes_;  // of the last version that was sent whole, and of the next
};

}  // namespace w5xde
