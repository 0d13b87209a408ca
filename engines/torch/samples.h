// A slot's samples as tensors: checked, converted, in memory that is used again for the next slot.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model.h"
#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace w5xde::torch_engine {

class SampleTensors {
 public:
  SampleTensors(const ModelOptions& options, const Model& model, at::Device device);

  // `invalid` unless the samples are what the options promised; classes and ids are in their range.
  Status load(const SlotSamples& samples);
  // Without targets, which are then undefined.
  Status load_inputs(const SampleInputs& inputs);

  std::int64_t count() const { return count_; }
  Model::Inputs inputs() const { return device_.is_cpu() ? inputs_ : device_inputs_; }
  const at::Tensor& targets() const { return device_.is_cpu() ? targets_ : device_targets_; }

 private:
  using Kind = SampleField::Kind;

  // An input, or the targets.
  struct Part {
    SampleField field;
    Kind kind = Kind::number;
    std::vector<std::int64_t> dims;  // [samples, …] as the model wants it, the first one changing
    std::uint64_t bound = 0;         // whole numbers are below; 0: any are taken
    std::optional<std::int64_t> ignored;
  };

  Status load(Part& part, const SampleTensor& from, at::Tensor& to) const;
  static Status load_numbers(const Part& part, const SampleTensor& from, at::Tensor& to);
  Status load_whole(const Part& part, const SampleTensor& from, at::Tensor& to) const;

  at::Device device_;
  std::vector<Part> input_parts_;
  Part target_part_;
  std::int64_t count_ = 0;
  std::vector<at::Tensor> inputs_, device_inputs_;
  at::Tensor targets_, device_targets_;
};

}  // namespace w5xde::torch_engine
