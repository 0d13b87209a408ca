// A slot's samples as tensors: checked, converted, in memory that is used again for the next slot.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <vector>

#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace w5xde::torch_engine {

class SampleTensors {
 public:
  // `dims` is how the model wants a sample of options.sample_shape.
  SampleTensors(const ModelOptions& options, std::vector<std::int64_t> dims, at::Device device);

  // `invalid` unless the samples are what the options promised; labels are all below options.classes.
  Status load(const SlotSamples& samples);

  std::int64_t count() const { return count_; }
  const at::Tensor& inputs() const { return on_device(inputs_, device_inputs_); }
  const at::Tensor& targets() const { return on_device(targets_, device_targets_); }

 private:
  Status load_inputs(const SampleTensor& tensor);
  Status load_classes(const SampleTensor& tensor);
  Status load_floats(const SampleTensor& tensor);
  const at::Tensor& on_device(const at::Tensor& host, const at::Tensor& device) const {
    return device_.is_cpu() ? host : device;
  }

  Shape sample_shape_;
  std::uint32_t classes_;
  bool one_class_a_sample_;
  at::Device device_;
  std::vector<std::int64_t> input_dims_;   // [samples, …], the first one changing
  std::vector<std::int64_t> target_dims_;  // of the last slot
  std::int64_t count_ = 0;
  at::Tensor inputs_, targets_, device_inputs_, device_targets_;
};

}  // namespace w5xde::torch_engine
