#pragma once

#include <ATen/ATen.h>

#include "w5xde/dtype.h"
#include "w5xde/result.h"

namespace w5xde::torch_engine {

// While one lives, this thread's matrix products and convolutions are computed in bf16 (torch.autocast); what
// needs the range or the precision stays f32, and so do parameters and their gradients. Around forward()
// only: backward() follows what forward() did.
class Autocast {
 public:
  // f32 changes nothing.
  Autocast(DType compute, at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_;
  bool was_on_ = false, kept_casts_ = false;
  at::ScalarType before_ = at::kFloat;
  at::Device device_;
};

// Whether a device can.
Status check_compute(DType compute, at::Device device);

}  // namespace w5xde::torch_engine
