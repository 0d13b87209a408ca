#include "autocast.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <torch/library.h>
#include <torch/version.h>

namespace w5xde::torch_engine {

namespace {

namespace autocast = at::autocast;

bool is_on(at::Device device) {
  return device.is_cpu() ? autocast::is_cpu_enabled() : autocast::is_enabled();
}
void turn(bool on, at::Device device) {
  device.is_cpu() ? autocast::set_cpu_enabled(on) : autocast::set_enabled(on);
}
at::ScalarType dtype_of(at::Device device) {
  return device.is_cpu() ? autocast::get_autocast_cpu_dtype() : autocast::get_autocast_gpu_dtype();
}
void set_dtype(at::ScalarType dtype, at::Device device) {
  device.is_cpu() ? autocast::set_autocast_cpu_dtype(dtype) : autocast::set_autocast_gpu_dtype(dtype);
}

#if TORCH_VERSION_MAJOR < 2
// libtorch 1.13 gives these bf16 inputs together with f32 weights, and refuses them then. As on GPUs, they
// are computed in f32.
using Weight = c10::optional<at::Tensor>;

at::Tensor layer_norm(const at::Tensor& input, at::IntArrayRef shape, const Weight& weight,
                      const Weight& bias, double epsilon, bool cudnn) {
  const c10::impl::ExcludeDispatchKeyGuard as_they_are(c10::DispatchKey::AutocastCPU);
  return at::layer_norm(input.to(at::kFloat), shape, weight, bias, epsilon, cudnn);
}

at::Tensor group_norm(const at::Tensor& input, std::int64_t groups, const Weight& weight, const Weight& bias,
                      double epsilon, bool cudnn) {
  const c10::impl::ExcludeDispatchKeyGuard as_they_are(c10::DispatchKey::AutocastCPU);
  return at::group_norm(input.to(at::kFloat), groups, weight, bias, epsilon, cudnn);
}

TORCH_LIBRARY_IMPL(aten, AutocastCPU, library) {
  library.impl("layer_norm", TORCH_FN(layer_norm));
  library.impl("group_norm", TORCH_FN(group_norm));
}
#endif

}  // namespace

Status check_compute(DType compute, at::Device device) {
  if (compute == DType::f32) return {};
  if (compute != DType::bf16)
    return invalid(fmt::format("--compute {}: it is f32 or bf16", name_of(compute)));
  if (device.is_cpu() || device.is_cuda()) return {};
  return invalid(
      fmt::format("device {} computes in f32; leave out --compute bf16, or take --device cpu", device.str()));
}

Autocast::Autocast(DType compute, at::Device device) : on_(compute == DType::bf16), device_(device) {
  if (!on_) return;
  was_on_ = is_on(device_);
  before_ = dtype_of(device_);
  kept_casts_ = autocast::is_autocast_cache_enabled();
  set_dtype(at::kBFloat16, device_);
  // The process has one cache of cast parameters, which any thread clears. Whether a parameter that is used
  // twice is found there decides if its gradients are added in bf16 or in f32: lanes would change the bits.
  autocast::set_autocast_cache_enabled(false);
  turn(true, device_);
}

Autocast::~Autocast() {
  if (!on_) return;
  turn(was_on_, device_);
  autocast::set_autocast_cache_enabled(kept_casts_);
  set_dtype(before_, device_);
}

}  // namespace w5xde::torch_engine
