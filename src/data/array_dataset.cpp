#include "data/array_dataset.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <utility>

#include "base/errors.h"

namespace w5xde {

namespace {

void copy_rows(Bytes rows, std::uint64_t row_bytes, std::span<const std::uint32_t> numbers,
               MutableBytes out) {
  assert(out.size() == numbers.size() * row_bytes);
  std::byte* to = out.data();
  for (const std::uint32_t number : numbers) {
    assert((number + std::uint64_t{1}) * row_bytes <= rows.size());
    std::memcpy(to, rows.data() + number * row_bytes, row_bytes);
    to += row_bytes;
  }
}

class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(Array inputs, Array targets, const Field& input, const Field& target, std::uint32_t classes)
      : inputs_(std::move(inputs)),
        targets_(std::move(targets)),
        input_(input),
        target_(target),
        classes_(classes) {}

  std::uint64_t samples() const override { return static_cast<std::uint64_t>(inputs_.tensor.shape()[0]); }
  const Field& inputs() const override { return input_; }
  const Field& targets() const override { return target_; }
  std::uint32_t classes() const override { return classes_; }

  void gather(std::span<const std::uint32_t> numbers, MutableBytes inputs,
              MutableBytes targets) const override {
    copy_rows(inputs_.tensor.bytes(), input_.sample_bytes(), numbers, inputs);
    copy_rows(targets_.tensor.bytes(), target_.sample_bytes(), numbers, targets);
  }

 private:
  Array inputs_;
  Array targets_;
  Field input_;
  Field target_;
  std::uint32_t classes_;
};

bool is_whole_number(DType dtype) {
  return dtype == DType::u8 || dtype == DType::i32 || dtype == DType::i64;
}

Status check_dtypes(const Array& inputs, const Array& targets) {
  const DType input = inputs.tensor.dtype();
  if (input != DType::f32 && input != DType::u8)
    return invalid(
        "{} has dtype {}; inputs are f32, or u8, which stands for value / 255. Convert it, "
        "in NumPy with array.astype('float32')",
        inputs.name, name_of(input));
  const DType target = targets.tensor.dtype();
  if (target != DType::f32 && !is_whole_number(target))
    return invalid(
        "{} has dtype {}; targets are classes as i64, i32 or u8, or values as f32. Convert it, "
        "in NumPy with array.astype('int64') or array.astype('float32')",
        targets.name, name_of(target));
  return {};
}

// What one row of the array is.
Result<Dataset::Field> row_of(const Array& array) {
  const Shape& shape = array.tensor.shape();
  if (shape.rank() == 0)
    return invalid(array.name + " is a single number; its first dimension has to count samples");
  W5XDE_TRY(const Shape row, Shape::make(shape.dims().subspan(1)));
  if (shape[0] == 0 || row.elements() == 0)
    return invalid("{} is empty: its shape is {}", array.name, shape.to_string());
  if (shape[0] > std::numeric_limits<std::uint32_t>::max())
    return invalid("{} has {} samples, 4294967295 is the most; split it", array.name, shape[0]);
  return Dataset::Field{array.tensor.dtype(), row};
}

template <class Label>
Result<std::uint32_t> count_classes_as(const Array& targets, const ClassBounds& bounds) {
  const Bytes bytes = targets.tensor.bytes();
  const auto count = bytes.size() / sizeof(Label);
  std::int64_t largest = -1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t label = load<Label>(bytes.data() + i * sizeof(Label));
    if (label < 0 || label >= std::int64_t{bounds.at_most}) {
      return invalid(
          "{}: the label of sample {} is {}, but classes are numbered 0 to {}. Mend the label; "
          "targets that are not classes are stored as f32",
          targets.name, i, label, bounds.at_most - 1);
    }
    largest = std::max(largest, label);
  }
  return std::max(static_cast<std::uint32_t>(largest + 1), bounds.at_least);
}

Result<std::uint32_t> count_classes(const Array& targets, const ClassBounds& bounds) {
  const Shape& shape = targets.tensor.shape();
  if (!is_whole_number(targets.tensor.dtype())) return 0u;
  if (shape.rank() != 1)
    return invalid(
        "{} has shape {}, but class labels have one dimension, a number for each sample. "
        "Reshape it, in NumPy with array.reshape(-1), or store values to predict as f32",
        targets.name, shape.to_string());
  switch (targets.tensor.dtype()) {
    case DType::u8:
      return count_classes_as<std::uint8_t>(targets, bounds);
    case DType::i32:
      return count_classes_as<std::int32_t>(targets, bounds);
    default:
      return count_classes_as<std::int64_t>(targets, bounds);
  }
}

}  // namespace

Result<SharedDataset> make_array_dataset(Array inputs, Array targets, const ClassBounds& bounds) {
  W5XDE_CHECK(check_dtypes(inputs, targets));
  W5XDE_TRY(const Dataset::Field input, row_of(inputs));
  W5XDE_TRY(const Dataset::Field target, row_of(targets));
  const std::int64_t input_count = inputs.tensor.shape()[0];
  const std::int64_t target_count = targets.tensor.shape()[0];
  if (input_count != target_count)
    return invalid("{} has {} samples but {} has {}; do the two belong together?", inputs.name, input_count,
                   targets.name, target_count);
  W5XDE_TRY(const std::uint32_t classes, count_classes(targets, bounds));
  return SharedDataset(
      std::make_shared<ArrayDataset>(std::move(inputs), std::move(targets), input, target, classes));
}

}  // namespace w5xde
