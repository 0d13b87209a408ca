#pragma once

#include <cstdint>
#include <vector>

#include "forecast/prediction.h"

namespace w5xde {

// Ways to run a situation, the gentlest first: what it does to the result, in the order of how much that is.
struct Advice {
  struct Choice {
    Mode mode = Mode::sync;
    GradientChoice gradient_codec;
    GradientChoice parameter_codec;
    Prediction prediction;
  };
  std::vector<Choice> choices;
  // The gentlest that is within a tenth of the fastest; or the exact one, where that is within a tenth of it.
  std::size_t recommended = 0;
  std::size_t fastest = 0;
  // The situation with kMoreSlots times its slots a step, and nothing else changed.
  static constexpr std::uint32_t kMoreSlots = 4;
  Prediction with_more_slots;

  const Choice& choice() const { return choices[recommended]; }
};

Advice advise(const Situation& situation);

}  // namespace w5xde
