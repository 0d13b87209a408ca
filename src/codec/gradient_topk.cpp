// The few floats that matter most, with their places.
#include "codec/gradient_stages.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace w5xde::gradient {

namespace {

std::uint32_t magnitude(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;  // ordered as magnitudes are, NaN above all
}

}  // namespace

void encode_topk(std::span<const float> values, std::size_t count, TopK& top, Out& out) {
  auto& [chosen, magnitudes] = top;
  // The smallest magnitude that is chosen, and how many of exactly that.
  magnitudes.resize(values.size());
  std::ranges::transform(values, magnitudes.begin(), magnitude);
  chosen.clear();
  if (count > 0) {
    const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count - 1);
    std::ranges::nth_element(magnitudes, last, std::greater<>());
    const std::uint32_t least = *last;
    auto ties = static_cast<std::size_t>(std::count(magnitudes.begin(), last + 1, least));
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      const std::uint32_t mine = magnitude(values[i]);
      if (mine < least || (mine == least && ties == 0)) continue;
      if (mine == least) --ties;
      chosen.push_back(i);
    }
  }
  ByteWriter writer(out);
  writer.write_varint(chosen.size());
  std::uint32_t next = 0;
  for (const std::uint32_t at : chosen) {
    writer.write_varint(at - next);
    next = at + 1;
  }
  for (const std::uint32_t at : chosen) writer.write(values[at]);
}

Status decode_topk(Bytes encoded, std::span<float> values) {
  ByteReader places(encoded);
  const std::uint64_t count = places.read_varint();
  if (places.exhausted() || count > values.size() || count > encoded.size() / (1 + sizeof(float))) {
    return corrupt("a sparse gradient with more floats than there are");
  }
  // The floats stand at the end, as many as places.
  ByteReader floats(encoded.last(count * sizeof(float)));
  std::ranges::fill(values, 0.0f);
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t gap = places.read_varint();
    if (places.exhausted() || gap >= values.size() - next)
      return corrupt("a sparse gradient's place is outside");
    values[next + gap] = floats.read<float>();
    next += gap + 1;
  }
  if (places.rest().size() != count * sizeof(float)) return corrupt("a sparse gradient of another length");
  return {};
}

}  // namespace w5xde::gradient
