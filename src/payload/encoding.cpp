#include "payload/encoding.h"

#include "base/errors.h"
#include "codec/shuffle.h"

namespace w5xde {

namespace {

// In place of a lossless codec's number: the sender measures which one pays. No codec has this number.
constexpr std::uint8_t kAutomatic = 255;

}  // namespace

AnswerCoding to_wire(const Encoding& encoding) {
  const SectionCodec section = encoding.lossless.value_or(SectionCodec());
  return {.form = encoding.form,
          .gradient_kind = static_cast<std::uint8_t>(encoding.gradient.kind),
          .rank = encoding.gradient.rank,
          .density = static_cast<float>(encoding.gradient.density),
          .lossless = encoding.lossless ? static_cast<std::uint8_t>(section.lossless.kind) : kAutomatic,
          .level = section.lossless.level,
          .shuffle_width = section.shuffle_width,
          .part_floats = encoding.part_floats};
}

Result<Encoding> from_wire(const AnswerCoding& coding) {
  Encoding encoding{.form = coding.form, .part_floats = coding.part_floats};
  const bool automatic = coding.lossless == kAutomatic;
  if ((!automatic && !is_known(coding.lossless)) || !is_shuffle_width(coding.shuffle_width))
    return corrupt("codec {} is not known", coding.lossless);
  if (automatic) {
    encoding.lossless.reset();
  } else {
    encoding.lossless = {.lossless = {static_cast<LosslessKind>(coding.lossless), coding.level},
                         .shuffle_width = coding.shuffle_width};
  }
  const bool whole = coding.form == Form::generic || coding.form == Form::shared;
  if (whole && coding.part_floats > 0) return corrupt("parts of a payload that is generic or shared");
  if (coding.form != Form::gradient) return encoding;
  GradientCodec& gradient = encoding.gradient;
  gradient = {.kind = static_cast<GradientKind>(coding.gradient_kind),
              .density = static_cast<double>(coding.density),
              .rank = coding.rank};
  // The codec's own reader knows what makes one.
  if (gradient.kind > kGradientKindLast || !parse_gradient_codec(to_string(gradient)).ok())
    return corrupt("gradient codec {} is not known", coding.gradient_kind);
  if (encoding.part_floats > 0 && (!gradient.by_chunks() || encoding.part_floats % kGradientChunk != 0))
    return corrupt("parts of {} floats of {}", encoding.part_floats, to_string(gradient));
  return encoding;
}

Coding to_wire(const GradientCodec& codec, std::uint64_t bytes) {
  return {.form = Form::gradient,
          .gradient_kind = static_cast<std::uint8_t>(codec.kind),
          .rank = codec.rank,
          .bytes = bytes};
}

GradientCodec from_wire(const Coding& coding) {
  // How sparse it is shows in the bytes.
  return {.kind = static_cast<GradientKind>(coding.gradient_kind), .density = 1, .rank = coding.rank};
}

bool follows(const Coding& coding, const Encoding& asked) {
  const Coding same = asked.form == Form::gradient ? to_wire(asked.gradient, coding.bytes)
                                                   : Coding{.form = asked.form, .bytes = coding.bytes};
  return coding == same;
}

bool has_feedback(const Coding& coding) {
  return coding.form == Form::gradient && !from_wire(coding).stateless();
}

}  // namespace w5xde
