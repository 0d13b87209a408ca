// Random numbers that are the same on every machine and compiler: the standard library fixes its generators
// but not its distributions, and a run must be repeatable from its seed.
#pragma once

#include <bit>
#include <cstdint>

namespace w5xde {

// SplitMix64: turns any number into a well-mixed one. Seeds of related things (slot 4 of step 7) are mixed.
inline constexpr std::uint64_t kMixStep = 0x9e3779b97f4a7c15u;
constexpr std::uint64_t mix(std::uint64_t value) {
  value += kMixStep;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// xoshiro256**, seeded as its authors say: with four SplitMix64 numbers in a row.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    // Stepping by one instead would give seeds that are neighbours three of their four words in common.
    for (auto& word : state_) {
      word = mix(seed);
      seed += kMixStep;
    }
  }

  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); bound must not be 0.
  std::uint64_t below(std::uint64_t bound) {
    // Draws from the incomplete last range would favour small numbers; throw them away.
    const std::uint64_t unfair = (0 - bound) % bound;
    std::uint64_t draw = next();
    while (draw < unfair) draw = next();
    return draw % bound;
  }

  // Uniform in [0, 1), 53 bits.
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  std::uint64_t state_[4] = {};
};

}  // namespace w5xde
