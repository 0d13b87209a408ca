#pragma once

#include <cstdint>
#include <vector>

namespace w5xde {

// What is done with the samples that a run computes with, before a model is given them. First the crop and
// the flip, in training only; then the normalisation, which evaluation has too. It is done to the one input
// that is numbers.
struct SamplePreparation {
  // (value - mean) / deviation, one of each for every channel, or one for all; none: values as they are. The
  // value of a pixel that is a u8 is u8 / 255.
  std::vector<float> mean, deviation;
  // An image gets this many rows and columns of zeros on each side, and is cut to its size again at a random
  // place.
  std::uint32_t crop_pixels = 0;
  bool flip = false;  // left to right, every other image, at random

  bool normalizes() const { return !mean.empty(); }
  bool augments() const { return crop_pixels > 0 || flip; }
  bool any() const { return normalizes() || augments(); }
  bool operator==(const SamplePreparation&) const = default;
};

// Of normalisation: more than images have, and enough for most tables.
inline constexpr std::size_t kChannelsMax = 1024;

}  // namespace w5xde
