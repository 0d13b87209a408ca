#include "forecast/traffic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/random.h"
#include "codec/lossless.h"
#include "codec/section.h"
#include "wire/enrolment.h"
#include "wire/frame.h"
#include "wire/generic_tensors.h"

namespace w5xde {

namespace {

// Seconds here are what one core of a virtual machine took when nothing else ran, on frames of 430 floats and
// of 1.9 million, parameters as they begin and gradients as in bench/data: in between where they differ.

// A number as MessagePack has it, a byte more than its own, and what it takes to write or read it: 3 to 4 ns,
// and 15 to 18.
constexpr double kGenericHead = 1;
constexpr double kGenericWriteSeconds = 4e-9, kGenericReadSeconds = 16e-9;
constexpr double kFrameBytes = kFrameHeaderBytes + kFrameChecksumBytes;
constexpr double kHeadBytes = 48;  // of a message, about

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

// What is left of floats, which hardly compress, and of floats in MessagePack, each of which has the same
// byte before it; and the seconds that a byte takes, before it is compressed.
struct LosslessCost {
  double floats = 1, generic = 1;
  double encode = 0, decode = 0;
};
LosslessCost cost_of(const LosslessCodec& codec) {
  switch (codec.kind) {
    case LosslessKind::none:
      return {};
    // It gives up soon on what does not compress: 2 to 9 GB/s, and more at its fastest.
    case LosslessKind::lz4:
    case LosslessKind::lz4_frame:
      return {.encode = 1 / 4e9};
    case LosslessKind::zstd:
      return {.floats = 0.92, .generic = 0.82, .encode = 1 / 300e6, .decode = 1 / 800e6};
    // Level 1: 80 to 137 MB/s; level 9: 46 to 90, and less where there is something to find; both come out at
    // 260 to 370.
    case LosslessKind::zlib:
      return {.floats = 0.92,
              .generic = 0.82,
              .encode = codec.level <= 1 ? 1 / 100e6 : 1 / 60e6,
              .decode = 1 / 300e6};
  }
  return {};
}

// Something on its way.
struct Passage {
  double bytes = 0, encode_seconds = 0, decode_seconds = 0;
  double chunks_seconds = 0;  // of encoding: what several cores can do side by side
};

// `numbers` numbers that take `bytes` bytes in total.
Passage passage_of(double numbers, double bytes, bool generic, const LosslessCodec& lossless) {
  Passage passage{.bytes = bytes};
  if (generic)
    passage = {.bytes = bytes + numbers * kGenericHead,
               .encode_seconds = numbers * kGenericWriteSeconds,
               .decode_seconds = numbers * kGenericReadSeconds};
  const LosslessCost cost = cost_of(lossless);
  const double ratio = generic ? cost.generic : cost.floats;
  passage.chunks_seconds = passage.bytes * cost.encode;
  passage.encode_seconds += passage.chunks_seconds;
  if (ratio < 1) passage.decode_seconds += passage.bytes * cost.decode;
  passage.bytes *= ratio;
  return passage;
}

// A block of the model's floats.
Passage passage_of(const BlockShape& shape, const GradientCodec& codec, bool generic,
                   const LosslessCodec& lossless) {
  const auto floats = static_cast<double>(shape.floats);
  Passage passage;
  if (codec.kind == GradientKind::none) {
    passage = passage_of(floats, floats * sizeof(float), generic, lossless);
  } else {
    const auto buffers = static_cast<double>(shape.floats - shape.parameters->floats());
    const auto coded = static_cast<double>(encoded_bytes_usual(codec, *shape.parameters));
    passage = passage_of(floats, coded + buffers * sizeof(float), false, lossless);
    const GradientCost cost = cost_of(codec);
    passage.encode_seconds += floats * cost.encode;
    passage.decode_seconds += floats * cost.decode;
  }
  passage.bytes += kFrameBytes + kHeadBytes;
  return passage;
}

// Of the numbers that stand for samples, in a lease.
double number_bytes(std::uint64_t samples) {
  return std::ceil(std::log2(4 * static_cast<double>(samples)) / 7);
}

double parts_of(const Situation& situation, const Traffic& traffic) {
  const RunConfig& config = situation.config;
  const std::uint64_t part = part_floats(situation.shape.floats, config.transport.part_bytes);
  const bool divides = traffic.gradient_codec.by_chunks() && traffic.parameter_codec.by_chunks();
  if (part == 0 || !divides || !config.steps_by_parts()) return 1;
  return static_cast<double>(situation.shape.floats) / static_cast<double>(part);
}

// What leases bring: samples, or the numbers of those that a node keeps.
void add_samples(const Situation& situation, const LosslessCodec& lossless, Traffic& traffic) {
  const Transport& transport = situation.config.transport;
  const double batch = situation.config.batch;
  const auto sample_bytes = static_cast<double>(situation.sample_bytes);
  double passing = 1;
  traffic.slot = 1;
  const LinkSpeed& link = situation.link;
  if (transport.keeps_samples(link.loopback(), link.bytes_per_second) && situation.samples > 0) {
    const double all = static_cast<double>(situation.samples) * sample_bytes;
    traffic.kept_bytes = std::min<double>(all, kSampleCacheBytes);
    passing = all == 0 ? 0 : 1 - traffic.kept_bytes / all;
    traffic.slot += batch * number_bytes(situation.samples);
  }
  const Passage samples = passage_of(passing * batch * static_cast<double>(situation.sample_numbers),
                                     passing * batch * sample_bytes, transport.generic(), lossless);
  traffic.slot += samples.bytes;
  traffic.slot_encode_seconds = samples.encode_seconds;
  traffic.slot_decode_seconds = samples.decode_seconds;
}

}  // namespace

Traffic traffic_of(const Situation& situation) {
  const Transport& transport = situation.config.transport;
  const BlockShape& shape = situation.shape;
  Traffic traffic{.gradient_codec = transport.gradient_codec.codec,
                  .parameter_codec = transport.parameter_codec.codec};
  const LosslessCodec down = transport.codec.codec;
  const LosslessCodec up = transport.codec_up(shape.floats * sizeof(float)).codec;

  traffic.whole_version = passage_of(shape, {}, transport.generic(), down).bytes;
  const Passage parameters = passage_of(shape, traffic.parameter_codec, transport.generic(), down);
  traffic.parameters = parameters.bytes;
  // What nodes make of a difference, the coordinator must know too.
  const bool differs = traffic.parameter_codec.kind != GradientKind::none;
  traffic.parameters_encode_seconds = parameters.encode_seconds + (differs ? parameters.decode_seconds : 0);
  // The nodes' cores rest while a version is made, and are the coordinator's too on loopback. How many it has
  // elsewhere is not known.
  if (situation.link.loopback()) {
    const double chunks = std::ceil(parameters.bytes / (1u << kChunkLog2Default));
    const double lanes = std::min<double>(situation.cores, chunks);
    traffic.parameters_encode_seconds -= parameters.chunks_seconds * (1 - 1 / lanes);
  }
  traffic.parameters_decode_seconds = parameters.decode_seconds;
  const Passage contribution = passage_of(shape, traffic.gradient_codec, transport.generic(), up);
  traffic.contribution = contribution.bytes;
  traffic.contribution_encode_seconds = contribution.encode_seconds;
  traffic.contribution_decode_seconds = contribution.decode_seconds;

  traffic.lease = kFrameBytes + kHeadBytes;
  add_samples(situation, down, traffic);
  traffic.parts = parts_of(situation, traffic);
  for (double* seconds : {&traffic.parameters_encode_seconds, &traffic.parameters_decode_seconds,
                          &traffic.contribution_encode_seconds, &traffic.contribution_decode_seconds,
                          &traffic.slot_encode_seconds, &traffic.slot_decode_seconds})
    *seconds *= situation.codec_pace;
  return traffic;
}

double measured_codec_pace() {
  constexpr std::int64_t kNumbers = 1 << 15;
  constexpr int kRounds = 5;
  const LosslessCodec codec{LosslessKind::zlib, 1};
  Random random(1);
  std::vector<float> numbers(static_cast<std::size_t>(kNumbers));
  for (float& number : numbers) number = static_cast<float>(random.normal());
  const Shape shape = Shape::make({&kNumbers, 1}).value();
  const GenericTensor tensor{"weights", {std::as_bytes(std::span(numbers)), DType::f32, shape}};
  std::vector<std::byte> written, packed, unpacked;
  LosslessCompressor compressor;
  LosslessDecompressor decompressor;
  // The shortest: whatever else the machine does only makes it longer.
  double shortest = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const Instant begun = SteadyClock().now();
    written.clear();
    encode_generic_tensors({&tensor, 1}, written);
    packed.resize(written.size());
    unpacked.resize(written.size());
    packed.resize(compressor.compress(codec, written, packed));
    const bool whole = decompressor.decompress(codec.kind, packed, unpacked).ok() &&
                       decode_generic_tensors(unpacked, Limits()).ok();
    if (whole) shortest = std::min(shortest, seconds_of(SteadyClock().now() - begun));
  }
  const Passage usual = passage_of(kNumbers, static_cast<double>(kNumbers) * sizeof(float), true, codec);
  return std::isfinite(shortest) ? shortest / (usual.encode_seconds + usual.decode_seconds) : 1;
}

}  // namespace w5xde
