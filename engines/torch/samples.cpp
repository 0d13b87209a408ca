#include "samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/bytes.h"

namespace w5xde::torch_engine {

namespace {

// A tensor of these sizes: the one that is there, if it has them already.
template <class T>
T* sized(at::Tensor& tensor, const std::vector<std::int64_t>& dims, at::ScalarType type) {
  if (!tensor.defined() || tensor.sizes() != at::IntArrayRef(dims)) tensor = at::empty(dims, type);
  return tensor.data_ptr<T>();
}

// Labels from memory of any alignment; the first one out of range, if any is.
template <class Label>
std::optional<std::int64_t> convert_labels(Bytes bytes, std::int64_t classes, std::int64_t* out) {
  const std::size_t count = bytes.size() / sizeof(Label);
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::int64_t>(load<Label>(bytes.data() + i * sizeof(Label)));
    if (label < 0 || label >= classes) return label;
    out[i] = label;
  }
  return std::nullopt;
}

}  // namespace

SampleTensors::SampleTensors(const ModelOptions& options, std::vector<std::int64_t> dims, at::Device device)
    : sample_shape_(options.sample_shape),
      classes_(options.classes),
      one_class_a_sample_(options.loss != "own"),
      device_(device),
      input_dims_(std::move(dims)) {
  input_dims_.insert(input_dims_.begin(), 0);
}

Status SampleTensors::load(const SlotSamples& samples) {
  W5XDE_CHECK(load_inputs(samples.inputs));
  const Shape& shape = samples.targets.shape;
  if (shape.rank() == 0 || shape[0] != count_) {
    return invalid(fmt::format("{} samples with targets of {}", count_, shape.to_string()));
  }
  target_dims_.assign(shape.dims().begin(), shape.dims().end());
  W5XDE_CHECK(classes_ > 0 ? load_classes(samples.targets) : load_floats(samples.targets));
  if (!device_.is_cpu()) {
    device_inputs_ = inputs_.to(device_);
    device_targets_ = targets_.to(device_);
  }
  return {};
}

Status SampleTensors::load_inputs(const SampleTensor& tensor) {
  const auto dims = tensor.shape.dims();
  if (dims.empty() || !std::ranges::equal(dims.subspan(1), sample_shape_.dims())) {
    return invalid(fmt::format("samples of {} for a model that takes [samples] of {}",
                               tensor.shape.to_string(), sample_shape_.to_string()));
  }
  count_ = dims[0];
  input_dims_[0] = count_;
  auto* out = sized<float>(inputs_, input_dims_, at::kFloat);
  if (tensor.dtype == DType::f32) {
    if (!tensor.bytes.empty()) std::memcpy(out, tensor.bytes.data(), tensor.bytes.size());
    return {};
  }
  if (tensor.dtype == DType::u8) {
    for (std::size_t i = 0; i < tensor.bytes.size(); ++i)
      out[i] = static_cast<float>(tensor.bytes[i]) / 255.0F;
    return {};
  }
  return invalid(fmt::format("inputs of {}; the engine takes f32 and u8", name_of(tensor.dtype)));
}

Status SampleTensors::load_classes(const SampleTensor& tensor) {
  if (one_class_a_sample_ && tensor.shape.rank() != 1) {
    return invalid(
        fmt::format("targets of {} where one class a sample is expected", tensor.shape.to_string()));
  }
  auto* out = sized<std::int64_t>(targets_, target_dims_, at::kLong);
  const std::int64_t classes = classes_;
  std::optional<std::int64_t> stray;
  switch (tensor.dtype) {
    case DType::i64:
      stray = convert_labels<std::int64_t>(tensor.bytes, classes, out);
      break;
    case DType::i32:
      stray = convert_labels<std::int32_t>(tensor.bytes, classes, out);
      break;
    case DType::u8:
      stray = convert_labels<std::uint8_t>(tensor.bytes, classes, out);
      break;
    default:
      return invalid(fmt::format("classes of {}; the engine takes i64, i32 and u8", name_of(tensor.dtype)));
  }
  if (stray) return invalid(fmt::format("label {} in data of {} classes", *stray, classes));
  return {};
}

Status SampleTensors::load_floats(const SampleTensor& tensor) {
  if (tensor.dtype != DType::f32) {
    return invalid(
        fmt::format("targets of {} that are no classes; the engine takes f32", name_of(tensor.dtype)));
  }
  auto* out = sized<float>(targets_, target_dims_, at::kFloat);
  if (!tensor.bytes.empty()) std::memcpy(out, tensor.bytes.data(), tensor.bytes.size());
  return {};
}

}  // namespace w5xde::torch_engine
