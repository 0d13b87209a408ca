#pragma once

#include <cstdint>
#include <vector>

#include "forecast/prediction.h"

namespace w5xde {

// A change of a situation in which one machine alone is faster than the pool.
struct Remedy {
  enum class Kind {
    more_slots,    // in a step: fewer exchanges
    larger_batch,  // the same, and a slot computes longer
    faster_link,
  };
  Kind kind = Kind::more_slots;
  // How many times as much: the least that makes the pool faster than one machine, or the most that is tried.
  std::uint32_t factor = 1;
  double gain = 0;  // of the pool then, over one machine alone; exact, in sync
};

// Ways to run a situation, the gentlest first: what it does to the result, in the order of how much that is.
struct Advice {
  struct Choice {
    Mode mode = Mode::sync;
    GradientChoice gradient_codec;
    GradientChoice parameter_codec;
    Prediction prediction;

    bool exact() const {
      return mode == Mode::sync && gradient_codec == GradientChoice() && parameter_codec == GradientChoice();
    }
  };
  std::vector<Choice> choices;
  // The gentlest that is within a tenth of the fastest; or the exact one, where that is within a tenth of it.
  std::size_t recommended = 0;
  std::size_t fastest = 0;
  // The situation with kMoreSlots times its slots a step, and nothing else changed.
  static constexpr std::uint32_t kMoreSlots = 4;
  Prediction with_more_slots;
  // How fast the recommended choice is, over one of the machines alone.
  double gain = 0;
  // What would make a pool worth it, where it is not and the nodes are several machines.
  std::vector<Remedy> remedies;

  const Choice& choice() const { return choices[recommended]; }
  // Whether the pool is faster than one machine alone, by more than what is hardly noticed.
  bool worth_pooling() const;
};

Advice advise(const Situation& situation);

}  // namespace w5xde
