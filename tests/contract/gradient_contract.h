// What every gradient codec promises: the suite is in gradient_contract.cpp, and the codecs' own test
// instantiates it with a row of GradientCodings.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "codec/gradient.h"

namespace w5xde::contract {

struct GradientCoding {
  std::string codec;  // as parse_gradient_codec reads it
  float momentum = 0;
};

inline std::ostream& operator<<(std::ostream& out, const GradientCoding& coding) {
  return out << coding.codec << (coding.momentum > 0 ? " with momentum" : "");
}

// "topk_0_05_with_momentum"
std::string name_of_gradient_coding(const testing::TestParamInfo<GradientCoding>& info);

std::shared_ptr<const BlockLayout> layout_of(std::vector<BlockLayout::Entry> entries);
std::vector<float> zeros_for(const BlockLayout& layout);
// Noise of very unlike sizes, as gradients are; nothing in the padding.
std::vector<float> gradient_for(const BlockLayout& layout, std::uint64_t seed);
// Expects that the bytes can be decoded.
std::vector<float> decoded(Bytes bytes, const GradientCodec& codec, const BlockLayout& layout);

class GradientContract : public testing::TestWithParam<GradientCoding> {
 protected:
  GradientEncoder encoder() const { return {codec_, layout_, GetParam().momentum}; }
  std::vector<float> there_and_back(GradientEncoder& encoder, const std::vector<float>& gradient) const {
    return decoded(encoder.encode(gradient), codec_, *layout_);
  }

  const GradientCodec codec_ = parse_gradient_codec(GetParam().codec).value();
  const std::shared_ptr<const BlockLayout> layout_ =
      layout_of({{"weight", {70, 31}}, {"bias", {70}}, {"kernel", {8, 3, 5, 5}}, {"scalar", {}}});
};

}  // namespace w5xde::contract
