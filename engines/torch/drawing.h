// Random numbers of a slot. libtorch has one default generator for the whole process, and a slot must draw
// from its own seed: slots that draw run one after the other, all others side by side.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

namespace w5xde::torch_engine {

// Whether a slot draws random numbers in forward().
enum class Draws {
  never,
  unknown,  // it is watched
  always,
};
constexpr Draws draws_if(bool draws) {
  return draws ? Draws::always : Draws::never;
}

// Held while a slot's forward() runs. Nothing is drawn in backward(): masks are kept for it.
class Drawing {
 public:
  // A slot that draws waits until no slot that draws or is watched is in forward(), and begins at `seed`.
  Drawing(Draws draws, std::uint64_t seed, at::Device device);
  ~Drawing();
  Drawing(const Drawing&) = delete;
  Drawing& operator=(const Drawing&) = delete;

  // Whether a watched slot has drawn; perhaps it was another one that runs beside it. What was computed does
  // not count then: compute it again as one that draws.
  bool surprised() const;

 private:
  struct GeneratorState;
  static GeneratorState generator_state();

  Draws draws_;
  std::unique_ptr<const GeneratorState> before_;  // of a watched slot
};

}  // namespace w5xde::torch_engine
