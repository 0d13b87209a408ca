#include "coordinator/traffic.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "wire/frame.h"

namespace w5xde {

namespace {

// A float as MessagePack has it, and what it takes to write or read it.
constexpr double kGenericBytes = 5;
constexpr double kGenericSeconds = 10e-9;
constexpr double kFrameBytes = kFrameHeaderBytes + kFrameChecksumBytes;
constexpr double kHeadBytes = 48;  // of a message, about
constexpr double kSampleCacheBytes = 256 * kMiB;

// Seconds a float takes on one core of an ordinary machine, in and out.
struct GradientCost {
  double encode = 0, decode = 0;
};
GradientCost cost_of(const GradientCodec& codec) {
  switch (codec.kind) {
    case GradientKind::none:
      return {};
    case GradientKind::fp16:
    case GradientKind::bf16:
      return {0.6e-9, 0.4e-9};
    case GradientKind::int8:
      return {0.8e-9, 0.15e-9};
    case GradientKind::onebit:
    case GradientKind::topk:
      return {1.3e-9, 0.2e-9};
    case GradientKind::powersgd:
      return {0.8e-9 + 0.25e-9 * codec.rank, 0.1e-9 * codec.rank};
  }
  return {};
}

// What is left of floats, which hardly compress, and the seconds that a byte takes going in. Coming out takes
// about a third of that.
struct LosslessCost {
  double ratio = 1;
  double encode = 0;
};
constexpr double kDecodePart = 1.0 / 3;
LosslessCost cost_of(const LosslessCodec& codec) {
  switch (codec.kind) {
    case LosslessKind::none:
      return {};
    case LosslessKind::lz4:
    case LosslessKind::lz4_frame:
      return {1, 1 / 800e6};
    case LosslessKind::zstd:
      return {0.93, 1 / 300e6};
    case LosslessKind::zlib:
      return {0.93, codec.level <= 1 ? 1 / 70e6 : 1 / 25e6};
  }
  return {};
}

GradientCodec lossy(const std::string& setting) {
  return setting == "auto" ? GradientCodec() : parse_gradient_codec(setting).value();
}

// One block of the model's floats on its way.
struct Passage {
  double bytes = 0, encode_seconds = 0, decode_seconds = 0;
};
Passage passage_of(const BlockShape& shape, const GradientCodec& codec, bool generic,
                   const LosslessCodec& lossless) {
  const auto floats = static_cast<double>(shape.floats);
  Passage passage;
  if (codec.kind != GradientKind::none) {
    const auto buffers = static_cast<double>(shape.floats - shape.parameters->floats());
    const GradientCost cost = cost_of(codec);
    passage = {static_cast<double>(encoded_bytes_usual(codec, *shape.parameters)) + buffers * sizeof(float),
               floats * cost.encode, floats * cost.decode};
  } else if (generic) {
    passage = {floats * kGenericBytes, floats * kGenericSeconds, floats * kGenericSeconds};
  } else {
    passage.bytes = floats * sizeof(float);
  }
  const LosslessCost cost = cost_of(lossless);
  passage.encode_seconds += passage.bytes * cost.encode;
  if (cost.ratio < 1) passage.decode_seconds += passage.bytes * cost.encode * kDecodePart;
  passage.bytes = passage.bytes * cost.ratio + kFrameBytes + kHeadBytes;
  return passage;
}

// Of the numbers that stand for samples, in a lease.
double number_bytes(std::uint64_t samples) {
  return std::ceil(std::log2(4 * static_cast<double>(samples)) / 7);
}

}  // namespace

Traffic traffic_of(const Situation& situation) {
  const Transport& transport = situation.config.transport;
  const BlockShape& shape = situation.shape;
  Traffic traffic{.gradient_codec = lossy(transport.gradient_codec),
                  .parameter_codec = lossy(transport.parameter_codec)};
  const LosslessCodec down = section_codec(transport.codec).lossless;
  const bool small = shape.floats * sizeof(float) < transport.codec_threshold;
  const LosslessCodec up = small ? LosslessCodec() : section_codec(transport.codec_up()).lossless;

  traffic.whole_version = passage_of(shape, {}, transport.generic(), down).bytes;
  const Passage parameters = passage_of(shape, traffic.parameter_codec, transport.generic(), down);
  traffic.parameters = parameters.bytes;
  // What nodes make of a difference, the coordinator must know too.
  const bool differs = traffic.parameter_codec.kind != GradientKind::none;
  traffic.parameters_encode_seconds = parameters.encode_seconds + (differs ? parameters.decode_seconds : 0);
  traffic.parameters_decode_seconds = parameters.decode_seconds;
  const Passage contribution = passage_of(shape, traffic.gradient_codec, transport.generic(), up);
  traffic.contribution = contribution.bytes;
  traffic.contribution_encode_seconds = contribution.encode_seconds;
  traffic.contribution_decode_seconds = contribution.decode_seconds;

  traffic.lease = kFrameBytes + kHeadBytes;
  const double batch = situation.config.batch;
  const auto sample_bytes = static_cast<double>(situation.sample_bytes);
  traffic.slot = 1 + batch * sample_bytes;
  const bool keeps =
      transport.sample_cache == "on" || (transport.sample_cache == "auto" && !situation.link.loopback());
  if (keeps && situation.samples > 0) {
    const double all = static_cast<double>(situation.samples) * sample_bytes;
    traffic.kept_bytes = std::min(all, kSampleCacheBytes);
    const double passing = all == 0 ? 0 : 1 - traffic.kept_bytes / all;
    traffic.slot = 1 + batch * (number_bytes(situation.samples) + passing * sample_bytes);
  }
  return traffic;
}

}  // namespace w5xde
