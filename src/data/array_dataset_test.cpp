#include "data/array_dataset.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "support/data_files.h"

namespace w5xde {
namespace {

template <class T>
Array array_of(const std::vector<T>& values, DType dtype, const Shape& shape, const std::string& name) {
  auto owner = std::make_shared<const std::vector<T>>(values);
  return {name, TensorView(std::as_bytes(std::span(*owner)), dtype, shape), owner};
}

Array inputs_of(std::int64_t samples) {
  return array_of(std::vector<float>(static_cast<std::size_t>(samples) * 2, 0.5f), DType::f32, {samples, 2},
                  "inputs");
}

template <class T>
std::string refusal_of_labels(const std::vector<T>& labels, DType dtype, const ClassBounds& bounds = {}) {
  const auto count = static_cast<std::int64_t>(labels.size());
  return refusal_of(make_array_dataset(inputs_of(count), array_of(labels, dtype, {count}, "labels"), bounds));
}

TEST(ArrayDatasetTest, whole_number_targets_are_classes_of_every_width) {
  const std::vector<std::uint8_t> narrow = {2, 0, 1};
  const std::vector<std::int32_t> medium = {2, 0, 1};
  const std::vector<std::int64_t> wide = {2, 0, 1};
  for (const Array& targets :
       {array_of(narrow, DType::u8, {3}, "u8"), array_of(medium, DType::i32, {3}, "i32"),
        array_of(wide, DType::i64, {3}, "i64")}) {
    const auto data = make_array_dataset(inputs_of(3), targets);
    ASSERT_TRUE(data.ok()) << data.error().message;
    EXPECT_EQ((*data)->classes(), 3u);
    EXPECT_EQ((*data)->samples(), 3u);
    EXPECT_EQ((*data)->inputs().shape, Shape{2});
    EXPECT_EQ((*data)->targets().shape, Shape());
    EXPECT_EQ((*data)->targets().dtype, targets.tensor.dtype());
  }
}

TEST(ArrayDatasetTest, float_targets_are_values_and_no_classes) {
  const auto targets = array_of(std::vector<float>{1, 2, 3, 4, 5, 6}, DType::f32, {2, 3}, "targets");
  const auto data = make_array_dataset(inputs_of(2), targets);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ((*data)->classes(), 0u);
  EXPECT_EQ((*data)->targets().shape, Shape{3});
  EXPECT_EQ(gather_from(**data, {1}).targets, memory_of(std::vector<float>{4, 5, 6}));
}

TEST(ArrayDatasetTest, lives_on_when_its_maker_s_arrays_are_gone) {
  SharedDataset data;
  {
    const std::vector<std::uint8_t> labels = {0, 1};
    data = make_array_dataset(inputs_of(2), array_of(labels, DType::u8, {2}, "labels")).value();
  }
  EXPECT_EQ(gather_from(*data, {1, 0}).targets, std::string("\1\0", 2));
}

TEST(ArrayDatasetTest, a_label_out_of_range_is_refused_by_its_sample_s_number) {
  EXPECT_TRUE(says(refusal_of_labels(std::vector<std::int64_t>{0, 1, -3}, DType::i64),
                   "invalid: labels: the label of sample 2 is -3"));
  EXPECT_TRUE(says(refusal_of_labels(std::vector<std::int32_t>{0, -1}, DType::i32), "sample 1 is -1"));
  EXPECT_TRUE(says(refusal_of_labels(std::vector<std::int64_t>{5'000'000'000}, DType::i64),
                   "sample 0 is 5000000000, but classes are numbered 0 to 16777215"));
  EXPECT_TRUE(says(refusal_of_labels(std::vector<std::uint8_t>{1, 3}, DType::u8, {.at_most = 3}),
                   "sample 1 is 3, but classes are numbered 0 to 2"));
}

TEST(ArrayDatasetTest, bounds_raise_the_number_of_classes) {
  const auto targets = array_of(std::vector<std::uint8_t>{0, 4}, DType::u8, {2}, "labels");
  EXPECT_EQ((*make_array_dataset(inputs_of(2), targets, {.at_least = 10}))->classes(), 10u);
  EXPECT_EQ((*make_array_dataset(inputs_of(2), targets, {.at_least = 2}))->classes(), 5u);
}

TEST(ArrayDatasetTest, nothing_to_learn_from_is_refused) {
  const auto labels = array_of(std::vector<std::uint8_t>{}, DType::u8, {0}, "labels");
  EXPECT_TRUE(
      says(refusal_of(make_array_dataset(inputs_of(0), labels)), "inputs is empty: its shape is [0, 2]"));
  const auto hollow = array_of(std::vector<float>{}, DType::f32, {3, 0}, "hollow");
  EXPECT_TRUE(says(refusal_of(make_array_dataset(hollow, labels)), "hollow is empty"));
  const auto number = array_of(std::vector<float>{1}, DType::f32, Shape(), "number");
  EXPECT_TRUE(says(refusal_of(make_array_dataset(number, labels)), "number is a single number"));
}

TEST(ArrayDatasetTest, arrays_that_do_not_go_together_are_refused) {
  const auto labels = array_of(std::vector<std::uint8_t>{0, 1}, DType::u8, {2}, "labels");
  EXPECT_TRUE(
      says(refusal_of(make_array_dataset(inputs_of(3), labels)), "inputs has 3 samples but labels has 2"));
  const auto column = array_of(std::vector<std::uint8_t>{0, 1}, DType::u8, {2, 1}, "column");
  EXPECT_TRUE(says(refusal_of(make_array_dataset(inputs_of(2), column)), "array.reshape(-1)"));
  const auto doubles = array_of(std::vector<double>{0, 1}, DType::f64, {2}, "doubles");
  EXPECT_TRUE(
      says(refusal_of(make_array_dataset(doubles, labels)), "doubles has dtype f64; inputs are f32, or u8"));
  EXPECT_TRUE(says(refusal_of(make_array_dataset(inputs_of(2), doubles)),
                   "doubles has dtype f64; targets are classes"));
}

RC_GTEST_PROP(ArrayDatasetTest, gathers_each_asked_row_in_the_order_asked, ()) {
  const auto samples = *rc::gen::inRange<std::int64_t>(1, 40);
  const auto width = *rc::gen::inRange<std::int64_t>(1, 9);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(samples * width));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37);
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 0; i < samples; ++i) labels.push_back(i);
  const auto data = make_array_dataset(array_of(pixels, DType::u8, {samples, width}, "pixels"),
                                       array_of(labels, DType::i32, {samples}, "labels"));
  const auto number = rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(samples));
  const auto numbers = *rc::gen::container<std::vector<std::uint32_t>>(number);

  std::string inputs;
  std::string targets;
  for (const std::uint32_t asked : numbers) {
    inputs +=
        memory_of(pixels).substr(asked * static_cast<std::size_t>(width), static_cast<std::size_t>(width));
    targets += memory_of(std::vector<std::uint32_t>{asked});
  }
  const Gathered gathered = gather_from(**data, numbers);
  RC_ASSERT(gathered.inputs == inputs);
  RC_ASSERT(gathered.targets == targets);
}

}  // namespace
}  // namespace w5xde
