#include "coordinator/broadcast.h"

#include <algorithm>

namespace w5xde {

namespace {

// So that a node's heartbeat gets in between.
constexpr std::uint64_t kPartFloats = 4 * 1024 * 1024;

}  // namespace

void Broadcast::prepare(const Learner& learner) {
  version_ = learner.version();
  parts_.clear();
  for (std::uint64_t first = 0; first < learner.floats(); first += kPartFloats) {
    const std::uint64_t count = std::min(kPartFloats, learner.floats() - first);
    Part part{
        .payload =
            TensorView::of_bytes(learner.state_bytes().subspan(first * sizeof(float), count * sizeof(float))),
        .checksum = std::make_shared<std::optional<std::uint64_t>>(),
        .raw_bytes = count * sizeof(float),
    };
    encode(Parameters{.version = learner.version(),
                      .first_float = first,
                      .floats_total = learner.floats(),
                      .tensors = {{DType::f32, Shape{static_cast<std::int64_t>(count)}}}},
           part.head);
    if (auto section = sender_.encode({&part.payload, 1})) {
      part.codec = static_cast<std::uint8_t>(codec_.lossless.kind);
      part.payload = TensorView::of_bytes(section->bytes);
      part.keep = std::move(section->keep);
    }
    parts_.push_back(std::move(part));
  }
}

Status Broadcast::send(const Learner& learner, Connection& connection, PayloadStats& stats) {
  if (version_ != learner.version()) prepare(learner);
  for (const Part& part : parts_) {
    stats.raw_bytes += part.raw_bytes;
    stats.wire_bytes += part.payload.byte_count();
    W5XDE_CHECK(connection.send({.type = FrameType::parameters,
                                 .codec = part.codec,
                                 .shuffle_width = part.codec == 0 ? std::uint8_t{0} : codec_.shuffle_width,
                                 .head = part.head,
                                 .payload = {&part.payload, 1},
                                 .keep = part.keep ? part.keep : learner.state(),
                                 .checksum = part.checksum}));
  }
  return {};
}

}  // namespace w5xde
