#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model.h"
#include "w5xde/block_layout.h"
#include "w5xde/engine.h"

namespace w5xde::torch_engine {

// Where a slot's values are added up.
struct Destination {
  Engine::Addends addends;
  std::span<float> contribution;
};

// Takes the gradient of each parameter from autograd the moment that backward() has made it, adds it into a
// contribution while it is in the processor's cache, and frees it: a slot never holds a model's gradients.
class Gradients {
 public:
  // Watches the parameters for as long as it lives; they are what `layout` lays out.
  Gradients(std::span<const ModelTensor> parameters, std::shared_ptr<const BlockLayout> layout);
  ~Gradients();
  Gradients(const Gradients&) = delete;
  Gradients& operator=(const Gradients&) = delete;

  // Runs backward() from `loss`, whose gradient is `root`. Throws what autograd throws; discard() then.
  void take(const at::Tensor& loss, const at::Tensor& root, const Destination& into);
  // Of a slot without samples.
  void take_none(const Destination& into);
  // What an unfinished slot has left: it would be added to.
  void discard();

 private:
  class Hook;
  struct Watched;

  void made(Watched& parameter);
  void store(const Watched& parameter, at::Tensor gradient);
  void finish();

  std::shared_ptr<const BlockLayout> layout_;
  std::vector<std::unique_ptr<Watched>> parameters_;
  const Destination* into_ = nullptr;  // while backward() runs
};

}  // namespace w5xde::torch_engine
