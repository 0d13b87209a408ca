// The stages behind codec/gradient.h, without feedback: floats to bytes and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "tensor/parameter_block.h"
#include "w5xde/result.h"

namespace w5xde::gradient {

using Out = std::vector<std::byte>;

// A scale speaks for so many floats.
inline constexpr std::size_t kChunk = 1024;

void encode_fp16(std::span<const float> values, Out& out);
Status decode_fp16(Bytes encoded, std::span<float> values);
void encode_bf16(std::span<const float> values, Out& out);
Status decode_bf16(Bytes encoded, std::span<float> values);
void encode_int8(std::span<const float> values, Out& out);
Status decode_int8(Bytes encoded, std::span<float> values);
void encode_onebit(std::span<const float> values, Out& out);
Status decode_onebit(Bytes encoded, std::span<float> values);

// The `count` floats of the largest magnitude; of equal ones, the first.
struct TopK {
  std::vector<std::uint32_t> chosen;      // their places
  std::vector<std::uint32_t> magnitudes;  // working memory
};
void encode_topk(std::span<const float> values, std::size_t count, TopK& top, Out& out);
Status decode_topk(Bytes encoded, std::span<float> values);

// Matrices as two thin ones, the rest as it is. `directions` is what the last call found, which the next
// begins with: one step of power iteration a call is enough while gradients change slowly.
void encode_powersgd(std::span<const float> block, const BlockLayout& layout, std::uint32_t rank,
                     std::vector<float>& directions, Out& out);
Status decode_powersgd(Bytes encoded, const BlockLayout& layout, std::uint32_t rank, std::span<float> block);

}  // namespace w5xde::gradient
