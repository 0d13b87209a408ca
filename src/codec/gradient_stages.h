// The stages behind codec/gradient.h: floats to bytes and back. A stage with feedback adds the gradient to
// what was kept, encodes what it can of the sum, and leaves the rest, each chunk while it is in the cache. It
// returns false where a sum is NaN or infinite: what it left is then useless, and what it wrote shows it too.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "codec/gradient.h"
#include "tensor/parameter_block.h"
#include "w5xde/result.h"

namespace w5xde::gradient {

// Both blocks are as long as the gradient. They are separate, because only the last float decides whether
// what was kept may be overwritten.
struct Feedback {
  std::span<const float> kept;
  std::span<float> left;
};

// left = kept + gradient
bool add(std::span<const float> gradient, Feedback feedback);

// Fewer bits for each float, kGradientChunk floats after the other: none, fp16, bf16, int8, onebit.
std::uint64_t quantized_bytes(GradientKind kind, std::uint64_t floats);
// All but onebit. Each writes quantized_bytes().
void quantize(std::span<const float> values, GradientKind kind, std::byte* to);
// int8 or onebit.
bool quantize_with_feedback(std::span<const float> gradient, GradientKind kind, Feedback feedback,
                            std::byte* to);
Status dequantize(Bytes encoded, GradientKind kind, std::span<float> values);

// Finds the `count` floats of the largest magnitude; of equal ones, the first. Fewer, where the
// others are zero or next to nothing beside the largest; all, if all are asked for.
class TopK {
 public:
  // Their places, in order, valid until the next call.
  std::span<const std::uint32_t> find(std::span<const float> values, std::size_t count);

 private:
  void collect(std::span<const float> values, std::int32_t least);

  std::vector<std::uint32_t> places_;  // of floats that may be among them
  std::vector<std::int32_t> magnitudes_;
  std::vector<std::int32_t> sample_;
};

std::uint64_t topk_bytes_max(std::uint64_t floats, std::uint64_t count);
// Returns how many bytes it wrote.
std::size_t encode_topk(std::span<const float> values, std::span<const std::uint32_t> places, std::byte* to);
Status decode_topk(Bytes encoded, std::span<float> values);
// With momentum, velocity.left = momentum velocity.kept + gradient, and that is what feedback is added.
bool add_with_momentum(std::span<const float> gradient, float momentum, Feedback velocity, Feedback feedback);

// Matrices as two thin ones, the rest as it is.
class PowerSgd {
 public:
  bool encode(std::span<const float> gradient, const BlockLayout& layout, std::uint32_t rank,
              Feedback feedback, std::byte* to);

 private:
  void begin(const BlockLayout& layout, std::uint32_t rank);

  // What the last call found, which the next begins with: one step of power iteration a call is enough while
  // gradients change slowly.
  std::vector<float> directions_;
  std::uint32_t rank_ = 0;  // that the directions are for; 0 before the first call
  std::vector<float> p_, row_;
};
std::uint64_t powersgd_bytes(const BlockLayout& layout, std::uint32_t rank);
Status decode_powersgd(Bytes encoded, const BlockLayout& layout, std::uint32_t rank, std::span<float> block);

}  // namespace w5xde::gradient
