// Random numbers that are the same on every machine: the standard library's distributions are not.
#pragma once

#include <bit>
#include <cmath>
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
// The seed of part number `part` of what `seed` is the seed of.
constexpr std::uint64_t mix(std::uint64_t seed, std::uint64_t part) {
  return mix(mix(seed) ^ part);
}

// The natural logarithm of a positive, normal number, to within a few units in the last place. Math libraries
// differ in the last bit; additions, multiplications and divisions do not.
constexpr double repeatable_log(double value) {
  constexpr double kLogOfTwo = 0.69314718055994530942;
  constexpr double kRootOfTwo = 1.41421356237309504880;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  auto exponent = static_cast<double>(bits >> 52) - 1023.0;
  auto mantissa = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
  if (mantissa > kRootOfTwo) {  // nearer to 1, where the series is quick
    mantissa *= 0.5;
    exponent += 1.0;
  }
  // log m = 2 (z + z^3/3 + z^5/5 + …) with z = (m - 1) / (m + 1), here below 0.172.
  const double z = (mantissa - 1.0) / (mantissa + 1.0);
  double series = 0.0;
  for (int power = 21; power > 0; power -= 2) series = series * (z * z) + 1.0 / power;
  return exponent * kLogOfTwo + 2.0 * z * series;
}

// xoshiro256**, seeded as its authors say: with four SplitMix64 numbers in a row.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    // Stepping by one instead would give neighbouring seeds three of four words in common.
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

  // Normal, with mean 0 and variance 1, by Marsaglia's polar method. Its second number is not kept: that
  // would make the next draw depend on how many came before.
  double normal() {
    while (true) {
      const double x = 2.0 * unit() - 1.0;
      const double y = 2.0 * unit() - 1.0;
      const double square = x * x + y * y;
      if (square < 1.0 && square > 0.0) return x * std::sqrt(-2.0 * repeatable_log(square) / square);
    }
  }

 private:
  std::uint64_t state_[4] = {};
};

}  // namespace w5xde
