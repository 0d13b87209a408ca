#include "samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "tensor/half.h"

namespace w5xde::torch_engine {

namespace {

// A tensor of these sizes: the one that is there, if it has them already.
template <class T>
T* sized(at::Tensor& tensor, const std::vector<std::int64_t>& dims, at::ScalarType type) {
  if (!tensor.defined() || tensor.sizes() != at::IntArrayRef(dims)) tensor = at::empty(dims, type);
  return tensor.data_ptr<T>();
}

// From memory of any alignment.
template <class From, class To, class Convert>
void convert(Bytes from, To* to, const Convert& number) {
  for (std::size_t i = 0; i * sizeof(From) < from.size(); ++i)
    to[i] = number(load<From>(from.data() + i * sizeof(From)));
}

template <class From>
void widen(Bytes from, std::int64_t* to) {
  convert<From>(from, to, [](From number) { return static_cast<std::int64_t>(number); });
}

}  // namespace

SampleTensors::SampleTensors(const ModelOptions& options, const Model& model, at::Device device)
    : device_(device), inputs_(options.inputs.size()), device_inputs_(options.inputs.size()) {
  const auto part_of = [](const SampleField& field) {
    Part part{.field = field, .kind = field.kind()};
    part.dims.assign(field.shape.dims().begin(), field.shape.dims().end());
    return part;
  };
  for (std::size_t i = 0; i < options.inputs.size(); ++i) {
    Part& part = input_parts_.emplace_back(part_of(options.inputs[i]));
    if (i < model.input_dims().size()) part.dims = model.input_dims()[i];
    part.bound = model.vocabulary() > 0 ? model.vocabulary() : part.field.ids;
  }
  target_part_ = part_of(options.targets);
  target_part_.kind = options.classes > 0 ? Kind::whole : Kind::number;
  target_part_.bound = options.classes;
  target_part_.ignored = options.ignore_index;
  for (Part& part : input_parts_) part.dims.insert(part.dims.begin(), 0);
  target_part_.dims.insert(target_part_.dims.begin(), 0);
}

Status SampleTensors::load_inputs(const SampleInputs& inputs) {
  if (inputs.size() != input_parts_.size()) {
    return invalid(
        fmt::format("samples with {} inputs for a model that takes {}", inputs.size(), input_parts_.size()));
  }
  const Shape& shape = inputs[0].shape;
  count_ = shape.rank() == 0 ? 0 : shape[0];
  for (std::size_t i = 0; i < input_parts_.size(); ++i)
    W5XDE_CHECK(load(input_parts_[i], inputs[i], inputs_[i]));
  if (device_.is_cpu()) return {};
  for (std::size_t i = 0; i < inputs_.size(); ++i) device_inputs_[i] = inputs_[i].to(device_);
  return {};
}

Status SampleTensors::load(const SlotSamples& samples) {
  W5XDE_CHECK(load_inputs(samples.inputs));
  W5XDE_CHECK(load(target_part_, samples.targets, targets_));
  if (!device_.is_cpu()) device_targets_ = targets_.to(device_);
  return {};
}

Status SampleTensors::load(Part& part, const SampleTensor& from, at::Tensor& to) const {
  const auto dims = from.shape.dims();
  if (dims.empty() || dims[0] != count_ || !std::ranges::equal(dims.subspan(1), part.field.shape.dims())) {
    return invalid(fmt::format("'{}' of {} in a slot of {} samples, each of {}", part.field.name,
                               from.shape.to_string(), count_, part.field.shape.to_string()));
  }
  part.dims[0] = count_;
  if (part.kind == Kind::whole) return load_whole(part, from, to);
  if (part.kind == Kind::number) return load_numbers(part, from, to);
  if (from.dtype != DType::boolean)
    return invalid(fmt::format("'{}' of {}; the model takes bool", part.field.name, name_of(from.dtype)));
  convert<std::byte>(from.bytes, sized<bool>(to, part.dims, at::kBool),
                     [](std::byte flag) { return flag != std::byte{0}; });
  return {};
}

Status SampleTensors::load_numbers(const Part& part, const SampleTensor& from, at::Tensor& to) {
  auto* out = sized<float>(to, part.dims, at::kFloat);
  const bool flags = from.dtype == DType::boolean && part.field.dtype == DType::boolean;  // targets 0 and 1
  if (from.dtype == DType::f32) {
    if (!from.bytes.empty()) std::memcpy(out, from.bytes.data(), from.bytes.size());
  } else if (from.dtype == DType::u8 || flags) {
    const float whole = flags ? 1.0F : 255.0F;
    for (std::size_t i = 0; i < from.bytes.size(); ++i) out[i] = static_cast<float>(from.bytes[i]) / whole;
  } else if (from.dtype == DType::f64) {
    convert<double>(from.bytes, out, [](double number) { return static_cast<float>(number); });
  } else if (from.dtype == DType::f16) {
    convert<std::uint16_t>(from.bytes, out, f32_from_f16);
  } else if (from.dtype == DType::bf16) {
    convert<std::uint16_t>(from.bytes, out, f32_from_bf16);
  } else {
    return invalid(fmt::format("'{}' of {}; the engine takes f32, f64, f16, bf16 and pixels (u8) there",
                               part.field.name, name_of(from.dtype)));
  }
  return {};
}

Status SampleTensors::load_whole(const Part& part, const SampleTensor& from, at::Tensor& to) const {
  auto* out = sized<std::int64_t>(to, part.dims, at::kLong);
  switch (from.dtype) {
    case DType::i64:
      widen<std::int64_t>(from.bytes, out);
      break;
    case DType::i32:
      widen<std::int32_t>(from.bytes, out);
      break;
    case DType::i16:
      widen<std::int16_t>(from.bytes, out);
      break;
    case DType::i8:
      widen<std::int8_t>(from.bytes, out);
      break;
    case DType::u8:
      widen<std::uint8_t>(from.bytes, out);
      break;
    default:
      return invalid(fmt::format("'{}' of {}; the engine takes whole numbers (u8, i8, i16, i32, i64) there",
                                 part.field.name, name_of(from.dtype)));
  }
  if (part.bound == 0) return {};
  const std::span<const std::int64_t> numbers(out, from.shape.elements());
  const auto stray = std::ranges::find_if(numbers, [&](std::int64_t number) {
    return number != part.ignored && (number < 0 || static_cast<std::uint64_t>(number) >= part.bound);
  });
  if (stray == numbers.end()) return {};
  const auto sample = static_cast<std::uint64_t>(stray - numbers.begin()) / part.field.shape.elements();
  if (&part == &target_part_)
    return invalid(
        fmt::format("label {} of sample {} of a slot, in data of {} classes", *stray, sample, part.bound));
  return invalid(fmt::format("id {} in '{}' of sample {} of a slot; the model takes 0 to {}", *stray,
                             part.field.name, sample, part.bound - 1));
}

}  // namespace w5xde::torch_engine
