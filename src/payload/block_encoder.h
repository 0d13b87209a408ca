#pragma once

#include <span>

#include "codec/gradient.h"
#include "payload/form.h"

namespace w5xde {

// Codes one node's blocks, one after the other, and keeps the codec's error feedback.
class BlockEncoder {
 public:
  BlockEncoder(BlockShape shape, float momentum);

  Formed encode(std::span<const float> block, const GradientCodec& codec, bool same_step = false);
  // Nothing is held back (GradientEncoder::encode_fresh_into).
  Formed encode_fresh(std::span<const float> block, const GradientCodec& codec);

  GradientEncoder& gradients() { return gradients_; }

 private:
  template <class Encode>
  Formed encode_with(std::span<const float> block, const GradientCodec& codec, const Encode& encode);

  BlockShape shape_;
  GradientEncoder gradients_;
};

}  // namespace w5xde
