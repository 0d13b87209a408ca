// Random numbers of a slot. libtorch has one default generator for the whole process, and a slot must draw
// from its own seed: slots that draw run one after the other, all others side by side.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>

namespace w5xde::torch_engine {

// Held while a slot's forward() runs. Nothing is drawn in backward(): masks are kept for it.
class Drawing {
 public:
  // `draws`: the slot may draw. It waits until no other slot is in forward(), and begins at `seed`.
  Drawing(bool draws, std::uint64_t seed, at::Device device);
  ~Drawing();
  Drawing(const Drawing&) = delete;
  Drawing& operator=(const Drawing&) = delete;

  // Whether a slot that was not to draw has drawn; perhaps it was another one that runs beside it. What was
  // computed does not count then: compute it again as one that draws.
  bool surprised() const;

 private:
  struct GeneratorState;
  static GeneratorState generator_state();

  bool draws_;
  std::unique_ptr<const GeneratorState> before_;  // where nothing is to change it
};

}  // namespace w5xde::torch_engine
