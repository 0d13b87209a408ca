// Every gradient codec on two million floats, each against memcpy of the same block.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "codec/gradient.h"
#include "wire_groups.h"

namespace w5xde::bench {

namespace {

std::shared_ptr<const BlockLayout> layout() {
  return BlockLayout::make({{"wide", {512, 2048}}, {"square", {976, 976}}, {"bias", {48576}}}, 1u << 24)
      .value();
}

std::vector<float> gradient_of(const BlockLayout& layout) {
  std::vector<float> gradient(layout.floats());
  Random random(13);
  for (const auto& entry : layout.entries()) {
    for (std::uint64_t i = 0; i < entry.shape.elements(); ++i) {
      gradient[entry.offset + i] = static_cast<float>(0.01 * random.normal() * std::exp2(4 * random.unit()));
    }
  }
  return gradient;
}

void measure(const std::string& name, int rounds, Report& report) {
  const auto block = layout();
  const auto codec = parse_gradient_codec(name).value();
  const auto gradient = gradient_of(*block);
  const auto bytes = static_cast<double>(block->floats() * sizeof(float));
  std::vector<float> decoded(gradient.size()), copy(gradient.size());
  GradientEncoder encoder(codec, block, 0.9f);
  Bytes encoded = encoder.encode(gradient);
  const auto rate = [&](const auto& work) { return bytes / seconds_for(work) / 1e9; };
  const auto copying = [&] {
    return rate([&] { std::memcpy(copy.data(), gradient.data(), gradient.size() * sizeof(float)); });
  };
  const auto encoding = [&] { return rate([&] { encoded = encoder.encode(gradient); }); };
  const auto decoding = [&] {
    return rate([&] {
      if (!decode_gradient(encoded, codec, *block, decoded).ok()) std::abort();
    });
  };
  report.add(name + ": in", "GB/s", interleave(4 * rounds, encoding, copying));
  report.add(name + ": out", "GB/s", interleave(4 * rounds, decoding, copying));
}

}  // namespace

void bench_gradients(int rounds, Report& report) {
  report.heading("gradient codecs against memcpy");
  for (const char* name : {"none", "fp16", "bf16", "int8", "onebit", "topk:0.01", "powersgd:4"})
    measure(name, rounds, report);
}

}  // namespace w5xde::bench
