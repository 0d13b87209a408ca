// How a payload travels, from the setting to the frame: the coordinator fills an Encoding from the run's
// settings, a lease carries it to the node, and sender and receiver do what it says. wire/messages.h has the
// same as numbers; the functions here are the only way from one to the other.
#pragma once

#include <cstdint>
#include <optional>

#include "codec/gradient.h"
#include "codec/section.h"
#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

struct Encoding {
  Form form = Form::direct;
  GradientCodec gradient;                                 // of Form::gradient
  std::optional<SectionCodec> lossless = SectionCodec();  // nullopt: the sender measures which one pays
  std::uint64_t part_floats = 0;                          // 0: in one piece

  const SectionCodec* fixed_lossless() const { return lossless ? &*lossless : nullptr; }
  bool has_feedback() const { return form == Form::gradient && !gradient.stateless(); }
  bool operator==(const Encoding&) const = default;
};

// What a lease asks of its answer.
AnswerCoding to_wire(const Encoding& encoding);
// corrupt when there is no such codec, or when what it codes cannot be cut into such parts.
Result<Encoding> from_wire(const AnswerCoding& coding);

// What the head of a frame says of a block that became `bytes` bytes with this codec.
Coding to_wire(const GradientCodec& codec, std::uint64_t bytes);
GradientCodec from_wire(const Coding& coding);
// Its sender's codec has a memory.
bool has_feedback(const Coding& coding);
// Whether a payload is coded as it was asked for.
bool follows(const Coding& coding, const Encoding& asked);

}  // namespace w5xde
