// Which gradient codec blocks travel with in one direction of one link: the gentlest that makes a step nearly
// as short as the harshest would. Pure; the same calls give the same choices.
//
//   a step takes   computing + coding + bytes / link rate
//   gentle         loses little: none, then int8, then topk
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/gradient.h"

namespace w5xde {

class GradientPolicy {
 public:
  // `density` of the sparse codec; 0: it is no choice.
  GradientPolicy(const BlockLayout& layout, double density);

  // A link rate of 0 is one that is not known yet: nothing is lost for a guess.
  struct Conditions {
    double link_bytes_per_second = 0;
    double computing_seconds = 0;  // of a step
  };
  const GradientCodec& choose(const Conditions& conditions);
  const GradientCodec& codec() const { return candidates_[current_].codec; }

  // What coding a block with the codec cost both sides.
  void measured(const GradientCodec& codec, double seconds);

  // "topk:0.01 (a step in 0.2 s, not 4.9)", "none (0.1 s a step anyway)"
  std::string describe() const;

 private:
  struct Candidate {
    GradientCodec codec;
    double bytes = 0;
    double coding_seconds = 0;
    double step_seconds = 0;  // as of the last choice
  };

  std::vector<Candidate> candidates_;
  std::size_t current_ = 0;
};

}  // namespace w5xde
