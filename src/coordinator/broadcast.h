#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/learner.h"
#include "net/payload_codec.h"
#include "wire/messages.h"

namespace w5xde {

// A version of the parameters on its way to the nodes: encoded and hashed once, however many they are. Loop
// thread only.
class Broadcast {
 public:
  Broadcast(const SectionCodec& codec, ThreadPool* pool) : codec_(codec), sender_(codec, pool) {}

  // Sends the learner's version; `stats` counts it.
  Status send(const Learner& learner, Connection& connection, PayloadStats& stats);

 private:
  struct Part {
    Head head;
    std::uint8_t codec = 0;
    TensorView payload;
    std::shared_ptr<const void> keep;  // none: the payload is the learner's own, which must be free to change
    std::shared_ptr<std::optional<std::uint64_t>> checksum;
    std::uint64_t raw_bytes = 0;
  };
  void prepare(const Learner& learner);

  SectionCodec codec_;
  PayloadSender sender_;
  std::optional<std::uint64_t> version_;
  std::vector<Part> parts_;  // of that version
};

}  // namespace w5xde
