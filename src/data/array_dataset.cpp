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
  ArrayDataset(std::vector<Array> inputs, Array targets, std::vector<Field> input_fields, Field target_field,
               std::uint32_t classes)
      : inputs_(std::move(inputs)),
        targets_(std::move(targets)),
        input_fields_(std::move(input_fields)),
        target_field_(std::move(target_field)),
        classes_(classes) {}

  std::uint64_t samples() const override { return static_cast<std::uint64_t>(targets_.tensor.shape()[0]); }
  std::span<const Field> inputs() const override { return input_fields_; }
  const Field& targets() const override { return target_field_; }
  std::uint32_t classes() const override { return classes_; }

  Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                MutableBytes targets) const override {
    assert(inputs.size() == inputs_.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      copy_rows(inputs_[i].tensor.bytes(), input_fields_[i].sample_bytes(), numbers, inputs[i]);
    copy_rows(targets_.tensor.bytes(), target_field_.sample_bytes(), numbers, targets);
    return {};
  }

 private:
  std::vector<Array> inputs_;
  Array targets_;
  std::vector<Field> input_fields_;
  Field target_field_;
  std::uint32_t classes_;
};

// What one row of the array is.
Result<Dataset::Field> row_of(const Array& array, const char* usual_name) {
  const Shape& shape = array.tensor.shape();
  const DType dtype = array.tensor.dtype();
  if (dtype == DType::c64 || dtype == DType::c128)
    return invalid("{} has dtype {}; complex numbers are not read. Store real and imaginary parts",
                   array.name, name_of(dtype));
  if (shape.rank() == 0)
    return invalid(array.name + " is a single number; its first dimension has to count samples");
  W5XDE_TRY(const Shape row, Shape::make(shape.dims().subspan(1)));
  if (shape[0] == 0 || row.elements() == 0)
    return invalid("{} is empty: its shape is {}", array.name, shape.to_string());
  if (shape[0] > std::numeric_limits<std::uint32_t>::max())
    return invalid("{} has {} samples, 4294967295 is the most; split it", array.name, shape[0]);
  return Dataset::Field{.name = array.field.empty() ? usual_name : array.field, .dtype = dtype, .shape = row};
}

template <class Number, class Visit>
void each_number_as(Bytes bytes, const Visit& visit) {
  for (std::uint64_t i = 0; i * sizeof(Number) < bytes.size(); ++i)
    visit(i, static_cast<std::int64_t>(load<Number>(bytes.data() + i * sizeof(Number))));
}

// visit(index, number) for each of a tensor's whole numbers.
template <class Visit>
void each_number(const TensorView& tensor, const Visit& visit) {
  switch (tensor.dtype()) {
    case DType::u8:
      return each_number_as<std::uint8_t>(tensor.bytes(), visit);
    case DType::i8:
      return each_number_as<std::int8_t>(tensor.bytes(), visit);
    case DType::i16:
      return each_number_as<std::int16_t>(tensor.bytes(), visit);
    case DType::i32:
      return each_number_as<std::int32_t>(tensor.bytes(), visit);
    default:
      return each_number_as<std::int64_t>(tensor.bytes(), visit);
  }
}

std::uint64_t count_ids(const TensorView& tensor) {
  std::int64_t smallest = 0, largest = 0;
  each_number(tensor, [&](std::uint64_t, std::int64_t number) {
    smallest = std::min(smallest, number);
    largest = std::max(largest, number);
  });
  return smallest < 0 ? 0 : static_cast<std::uint64_t>(largest) + 1;
}

Result<std::uint32_t> count_classes(const Array& targets, const Dataset::Field& field,
                                    const ClassBounds& bounds) {
  if (field.kind() != Dataset::Field::Kind::whole) return 0u;
  struct Stray {
    std::uint64_t index;
    std::int64_t label;
  };
  std::optional<Stray> stray;
  std::int64_t largest = -1;
  each_number(targets.tensor, [&](std::uint64_t index, std::int64_t label) {
    if (label == bounds.ignored) return;
    if ((label < 0 || label >= std::int64_t{bounds.at_most}) && !stray) stray = {index, label};
    largest = std::max(largest, label);
  });
  if (stray) {
    return invalid(
        "{}: the label of sample {} is {}, but classes are numbered 0 to {}. Mend the label; targets that "
        "are not classes are stored as f32, and --ignore-index names one that does not count",
        targets.name, stray->index / field.shape.elements(), stray->label, bounds.at_most - 1);
  }
  if (largest < 0)
    return invalid("{}: every label is the ignored one, {}", targets.name, bounds.ignored.value_or(0));
  return std::max(static_cast<std::uint32_t>(largest + 1), bounds.at_least);
}

Status check_names(std::span<const Dataset::Field> inputs, const Dataset::Field& targets) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto same = [&](const Dataset::Field& other) { return other.name == inputs[i].name; };
    if (same(targets) || std::ranges::any_of(inputs.first(i), same))
      return invalid("two parts of a sample are named '{}'; give each a name of its own", inputs[i].name);
  }
  return {};
}

}  // namespace

Result<SharedDataset> make_array_dataset(std::vector<Array> inputs, Array targets,
                                         const ClassBounds& bounds) {
  if (inputs.empty() || inputs.size() > kInputsMax)
    return invalid("{} inputs; a sample has 1 to {}", inputs.size(), kInputsMax);
  std::vector<Dataset::Field> fields;
  for (const Array& input : inputs) {
    W5XDE_TRY(fields.emplace_back(), row_of(input, "inputs"));
  }
  W5XDE_TRY(Dataset::Field target, row_of(targets, "targets"));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::int64_t input_count = inputs[i].tensor.shape()[0];
    const std::int64_t target_count = targets.tensor.shape()[0];
    if (input_count != target_count)
      return invalid("{} has {} samples but {} has {}; do the two belong together?", inputs[i].name,
                     input_count, targets.name, target_count);
    fields[i].pixels = fields[i].dtype == DType::u8;
    if (fields[i].kind() == Dataset::Field::Kind::whole) fields[i].ids = count_ids(inputs[i].tensor);
  }
  W5XDE_CHECK(check_names(fields, target));
  W5XDE_TRY(const std::uint32_t classes, count_classes(targets, target, bounds));
  return SharedDataset(std::make_shared<ArrayDataset>(std::move(inputs), std::move(targets),
                                                      std::move(fields), std::move(target), classes));
}

}  // namespace w5xde
