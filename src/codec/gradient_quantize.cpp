// Fewer bits for each float: fp16, bf16, int8, onebit.
#include "codec/vectorised.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "codec/gradient_stages.h"
#include "tensor/half.h"

namespace w5xde::gradient {

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int32_t kInfinityBits = 0x7f800000;  // and above it, NaN

// Ordered as magnitudes are, NaN above all.
W5XDE_KERNEL std::int32_t magnitude_bits(float value) {
  return std::bit_cast<std::int32_t>(value) & 0x7fffffff;
}

W5XDE_KERNEL std::int32_t largest_of(const float* values, std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, magnitude_bits(values[i]));
  return largest;
}

// Returns the largest magnitude's bits.
W5XDE_KERNEL std::int32_t sum_of(const float* gradient, const float* kept, float* __restrict left,
                                 std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    left[i] = kept[i] + gradient[i];
    largest = std::max(largest, magnitude_bits(left[i]));
  }
  return largest;
}

// How a chunk of floats lies in its bytes, by GradientKind: scales first, then `bits` bits a float.
struct Packing {
  std::size_t scale_bytes, bits;

  std::size_t bytes(std::size_t floats) const { return scale_bytes + (floats * bits + 7) / 8; }
};
constexpr Packing kPackings[] = {{0, 32}, {4, 16}, {0, 16}, {4, 8}, {8, 1}};

const Packing& packing_of(GradientKind kind) {
  assert(kind <= GradientKind::onebit);
  return kPackings[static_cast<std::size_t>(kind)];
}

// Calls body(first, count, byte) for each chunk: its floats, and where its bytes begin.
void for_each_chunk(GradientKind kind, std::size_t floats, const auto& body) {
  for (std::size_t first = 0, byte = 0; first < floats; first += kGradientChunk) {
    const std::size_t count = std::min(kGradientChunk, floats - first);
    body(first, count, byte);
    byte += packing_of(kind).bytes(count);
  }
}

// Scaled by a power of two, which loses nothing, so that a chunk uses all of half's range.
W5XDE_KERNEL void encode_fp16_chunk(const float* values, std::size_t count, std::byte* __restrict to) {
  const std::int32_t largest = largest_of(values, count);
  if (largest >= kInfinityBits) {
    store(to, kNan);
    std::memset(to + sizeof(float), 0, count * sizeof(std::uint16_t));
    return;
  }
  int exponent = 0;
  if (largest > 0) (void)std::frexp(std::bit_cast<float>(largest), &exponent);
  // The largest becomes 2^14 … 2^15; a scale that is no normal number would lose what it scales.
  exponent = std::clamp(exponent - 15, -126, 126);
  store(to, std::ldexp(1.0f, exponent));
  const float inverse = std::ldexp(1.0f, -exponent);
  std::array<float, kGradientChunk> scaled;
  for (std::size_t i = 0; i < count; ++i) scaled[i] = values[i] * inverse;
  // Rounding up the largest floats of all, to 2^128, would make them infinite.
  if (exponent == 128 - 15) {
    constexpr float kLargestBelow = 0x1.ffcp14f;
    for (std::size_t i = 0; i < count; ++i) scaled[i] = std::clamp(scaled[i], -kLargestBelow, kLargestBelow);
  }
  std::array<std::uint16_t, kGradientChunk> halves;
  convert_f32_to_f16(std::span(scaled).first(count), std::span(halves).first(count));
  std::memcpy(to + sizeof(float), halves.data(), count * sizeof(std::uint16_t));
}

W5XDE_KERNEL void decode_fp16_chunk(const std::byte* from, float* __restrict values, std::size_t count) {
  const auto scale = load<float>(from);
  std::array<std::uint16_t, kGradientChunk> halves;
  std::memcpy(halves.data(), from + sizeof(float), count * sizeof(std::uint16_t));
  convert_f16_to_f32(std::span(halves).first(count), {values, count});
  for (std::size_t i = 0; i < count; ++i) values[i] *= scale;
}

W5XDE_KERNEL void encode_bf16_chunk(const float* values, std::size_t count, std::byte* __restrict to) {
  // Rounding up the largest floats of all would make them infinite.
  constexpr std::int32_t kLargest = 0x7f7f0000;
  for (std::size_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<std::int32_t>(values[i]);
    const std::int32_t magnitude = bits & 0x7fffffff;
    const bool too_large = (magnitude > kLargest) & (magnitude < kInfinityBits);
    const std::int32_t rounded = too_large ? kLargest : magnitude + 0x7fff + ((magnitude >> 16) & 1);
    const std::int32_t kept = magnitude > kInfinityBits ? magnitude | 0x400000 : rounded;
    store(to + i * sizeof(std::uint16_t), static_cast<std::uint16_t>((kept | (bits ^ magnitude)) >> 16));
  }
}

W5XDE_KERNEL void decode_bf16_chunk(const std::byte* from, float* __restrict values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    values[i] = f32_from_bf16(load<std::uint16_t>(from + i * sizeof(std::uint16_t)));
}

W5XDE_KERNEL bool encode_int8_chunk(const float* gradient, const float* kept, float* __restrict left,
                                    std::size_t count, std::byte* __restrict to) {
  const std::int32_t largest = sum_of(gradient, kept, left, count);
  if (largest >= kInfinityBits) {
    store(to, kNan);
    std::memset(to + sizeof(float), 0, count);
    return false;
  }
  float scale = std::bit_cast<float>(largest) / 127;
  if (!std::isfinite(scale * 127)) scale = std::nextafter(scale, 0.0f);
  store(to, scale);
  // Of a chunk of subnormals little is left to scale by; it arrives as zeros, and feedback has the rest.
  const float inverse = scale > 0 && std::isfinite(1 / scale) ? 1 / scale : 0;
  std::byte* const bytes = to + sizeof(float);
  // At this size a float's last place is one, so that adding it rounds, and leaves the whole number in the
  // lowest bits.
  constexpr float kRounder = 0x1.8p23f;
  for (std::size_t i = 0; i < count; ++i) {
    const float rounded = left[i] * inverse + kRounder;
    bytes[i] = static_cast<std::byte>(std::bit_cast<std::uint32_t>(rounded));
    left[i] -= (rounded - kRounder) * scale;
  }
  return true;
}

W5XDE_KERNEL void decode_int8_chunk(const std::byte* from, float* __restrict values, std::size_t count) {
  const auto scale = load<float>(from);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(load<std::int8_t>(from + sizeof(float) + i)) * scale;
}

// Bit i is the lowest bit of byte i.
W5XDE_KERNEL std::byte gathered(std::uint64_t flags) {
  return static_cast<std::byte>((flags * 0x0102040810204080u) >> 56);
}

// Of some floats, those above zero and the others.
struct Sides {
  double above = 0, below = 0;
  std::uint32_t above_count = 0;
};

// All ones above zero, else all zeros. As whole numbers, because the compiler will not do without branches on
// floats that may trap.
W5XDE_KERNEL std::int32_t above_mask(float value) {
  return -static_cast<std::int32_t>(std::bit_cast<std::int32_t>(value) > 0);
}

W5XDE_KERNEL Sides sides_of(const float* values, std::size_t count) {
  constexpr std::size_t kLanes = 4;
  using Floats [[gnu::vector_size(kLanes * sizeof(float))]] = float;
  using Bits [[gnu::vector_size(kLanes * sizeof(float))]] = std::int32_t;
  using Doubles [[gnu::vector_size(kLanes * sizeof(double))]] = double;
  Doubles above[2] = {}, below[2] = {};
  Bits above_counts = {};
  const auto add_lanes = [&](const float* from, std::size_t floats, std::size_t turn) {
    Bits bits = {};
    std::memcpy(&bits, from, floats * sizeof(float));
    const Bits mask = bits > 0;
    above_counts -= mask;
    above[turn] += __builtin_convertvector(std::bit_cast<Floats>(bits & mask), Doubles);
    below[turn] += __builtin_convertvector(std::bit_cast<Floats>(bits & ~mask), Doubles);
  };
  std::size_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    add_lanes(values + i, kLanes, 0);
    add_lanes(values + i + kLanes, kLanes, 1);
  }
  for (; i < count; ++i) add_lanes(values + i, 1, 0);
  Sides sides;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    sides.above += above[0][lane] + above[1][lane];
    sides.below += below[0][lane] + below[1][lane];
    sides.above_count += static_cast<std::uint32_t>(above_counts[lane]);
  }
  return sides;
}

W5XDE_KERNEL float mean_of(double sum, std::size_t count) {
  return count == 0 ? 0.0f : static_cast<float>(sum / static_cast<double>(count));
}

// A chunk is its signs, and the mean of those above zero and of those that are not.
W5XDE_KERNEL bool encode_onebit_chunk(const float* gradient, const float* kept, float* __restrict left,
                                      std::size_t count, std::byte* __restrict to) {
  const bool finite = sum_of(gradient, kept, left, count) < kInfinityBits;
  const Sides sides = sides_of(left, count);
  const float below = finite ? mean_of(sides.below, count - sides.above_count) : kNan;
  const float above = finite ? mean_of(sides.above, sides.above_count) : kNan;
  store(to, below);
  store(to + sizeof(float), above);
  const auto below_bits = std::bit_cast<std::int32_t>(below), above_bits = std::bit_cast<std::int32_t>(above);
  std::array<std::uint8_t, kGradientChunk> flags;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t mask = above_mask(left[i]);
    flags[i] = static_cast<std::uint8_t>(mask & 1);
    left[i] -= std::bit_cast<float>((above_bits & mask) | (below_bits & ~mask));
  }
  for (std::size_t i = count; i % 8 != 0; ++i) flags[i] = 0;
  std::byte* const bits = to + 2 * sizeof(float);
  for (std::size_t i = 0; i < count; i += 8)
    bits[i / 8] = gathered(load<std::uint64_t>(reinterpret_cast<const std::byte*>(&flags[i])));
  return finite;
}

W5XDE_KERNEL void decode_onebit_chunk(const std::byte* from, float* __restrict values, std::size_t count) {
  using Bits [[gnu::vector_size(8 * sizeof(std::int32_t))]] = std::int32_t;
  const auto below = load<std::int32_t>(from), above = load<std::int32_t>(from + sizeof(float));
  const std::byte* const bits = from + 2 * sizeof(float);
  constexpr Bits kBit = {1, 2, 4, 8, 16, 32, 64, 128};
  const auto decode_byte = [&](std::size_t i, std::size_t floats) {
    const Bits mask = (std::to_integer<std::int32_t>(bits[i / 8]) & kBit) != 0;
    const Bits chosen = (above & mask) | (below & ~mask);
    std::memcpy(values + i, &chosen, floats * sizeof(float));
  };
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) decode_byte(i, 8);
  if (i < count) decode_byte(i, count - i);
}

W5XDE_KERNEL std::int32_t sum_of_momentum(const float* gradient, float momentum, const float* velocity,
                                          float* __restrict next_velocity, const float* kept,
                                          float* __restrict left, std::size_t count) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    next_velocity[i] = momentum * velocity[i] + gradient[i];
    left[i] = kept[i] + next_velocity[i];
    // A velocity of NaN or infinity makes the sum one, too.
    largest = std::max(largest, magnitude_bits(left[i]));
  }
  return largest;
}

}  // namespace

bool add(std::span<const float> gradient, Feedback feedback) {
  return vectorised<sum_of>(gradient.data(), feedback.kept.data(), feedback.left.data(), gradient.size()) <
         kInfinityBits;
}

bool add_with_momentum(std::span<const float> gradient, float momentum, Feedback velocity,
                       Feedback feedback) {
  return vectorised<sum_of_momentum>(gradient.data(), momentum, velocity.kept.data(), velocity.left.data(),
                                     feedback.kept.data(), feedback.left.data(),
                                     gradient.size()) < kInfinityBits;
}

std::uint64_t quantized_bytes(GradientKind kind, std::uint64_t floats) {
  const Packing& packing = packing_of(kind);
  const std::uint64_t rest = floats % kGradientChunk;
  return floats / kGradientChunk * packing.bytes(kGradientChunk) + (rest == 0 ? 0 : packing.bytes(rest));
}

void quantize(std::span<const float> values, GradientKind kind, std::byte* to) {
  constexpr std::array<float, kGradientChunk> kNothing{};
  std::array<float, kGradientChunk> left;
  for_each_chunk(kind, values.size(), [&](std::size_t first, std::size_t count, std::size_t byte) {
    const float* from = values.data() + first;
    if (kind == GradientKind::none) {
      std::memcpy(to + byte, from, count * sizeof(float));
    } else if (kind == GradientKind::fp16) {
      vectorised<encode_fp16_chunk>(from, count, to + byte);
    } else if (kind == GradientKind::bf16) {
      vectorised<encode_bf16_chunk>(from, count, to + byte);
    } else {
      (void)vectorised<encode_int8_chunk>(from, kNothing.data(), left.data(), count, to + byte);
    }
  });
}

bool quantize_with_feedback(std::span<const float> gradient, GradientKind kind, Feedback feedback,
                            std::byte* to) {
  bool finite = true;
  for_each_chunk(kind, gradient.size(), [&](std::size_t first, std::size_t count, std::size_t byte) {
    const float *from = gradient.data() + first, *kept = feedback.kept.data() + first;
    float* left = feedback.left.data() + first;
    finite &= kind == GradientKind::int8
                  ? vectorised<encode_int8_chunk>(from, kept, left, count, to + byte)
                  : vectorised<encode_onebit_chunk>(from, kept, left, count, to + byte);
  });
  return finite;
}

Status dequantize(Bytes encoded, GradientKind kind, std::span<float> values) {
  if (encoded.size() != quantized_bytes(kind, values.size())) return corrupt("a gradient of another length");
  for_each_chunk(kind, values.size(), [&](std::size_t first, std::size_t count, std::size_t byte) {
    const std::byte* from = encoded.data() + byte;
    float* to = values.data() + first;
    if (kind == GradientKind::none) {
      std::memcpy(to, from, count * sizeof(float));
    } else if (kind == GradientKind::fp16) {
      vectorised<decode_fp16_chunk>(from, to, count);
    } else if (kind == GradientKind::bf16) {
      vectorised<decode_bf16_chunk>(from, to, count);
    } else if (kind == GradientKind::int8) {
      vectorised<decode_int8_chunk>(from, to, count);
    } else {
      vectorised<decode_onebit_chunk>(from, to, count);
    }
  });
  return {};
}

}  // namespace w5xde::gradient
