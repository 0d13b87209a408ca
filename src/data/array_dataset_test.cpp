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
  return refusal_of(
      make_array_dataset({inputs_of(count)}, array_of(labels, dtype, {count}, "labels"), bounds));
}

TEST(ArrayDatasetTest, whole_number_targets_are_classes_of_every_width) {
  const std::vector<std::uint8_t> narrow = {2, 0, 1};
  const std::vector<std::int32_t> medium = {2, 0, 1};
  const std::vector<std::int64_t> wide = {2, 0, 1};
  for (const Array& targets :
       {array_of(narrow, DType::u8, {3}, "u8"), array_of(medium, DType::i32, {3}, "i32"),
        array_of(wide, DType::i64, {3}, "i64")}) {
    const auto data = make_array_dataset({inputs_of(3)}, targets);
    ASSERT_TRUE(data.ok()) << data.error().message;
    EXPECT_EQ((*data)->classes(), 3u);
    EXPECT_EQ((*data)->samples(), 3u);
    EXPECT_EQ((*data)->inputs()[0].shape, Shape{2});
    EXPECT_EQ((*data)->targets().shape, Shape());
    EXPECT_EQ((*data)->targets().dtype, targets.tensor.dtype());
  }
}

TEST(ArrayDatasetTest, float_targets_are_values_and_no_classes) {
  const auto targets = array_of(std::vector<float>{1, 2, 3, 4, 5, 6}, DType::f32, {2, 3}, "targets");
  const auto data = make_array_dataset({inputs_of(2)}, targets);
  ASSERT_TRUE(data.ok());
  EXPECT_EQ((*data)->classes(), 0u);
  EXPECT_EQ((*data)->targets().shape, Shape{3});
  EXPECT_EQ(gather_from(**data, {1}).targets, memory_of(std::vector<float>{4, 5, 6}));
}

TEST(ArrayDatasetTest, lives_on_when_its_maker_s_arrays_are_gone) {
  SharedDataset data;
  {
    const std::vector<std::uint8_t> labels = {0, 1};
    data = make_array_dataset({inputs_of(2)}, array_of(labels, DType::u8, {2}, "labels")).value();
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
  EXPECT_EQ((*make_array_dataset({inputs_of(2)}, targets, {.at_least = 10}))->classes(), 10u);
  EXPECT_EQ((*make_array_dataset({inputs_of(2)}, targets, {.at_least = 2}))->classes(), 5u);
}

TEST(ArrayDatasetTest, nothing_to_learn_from_is_refused) {
  const auto labels = array_of(std::vector<std::uint8_t>{}, DType::u8, {0}, "labels");
  EXPECT_TRUE(
      says(refusal_of(make_array_dataset({inputs_of(0)}, labels)), "inputs is empty: its shape is [0, 2]"));
  const auto hollow = array_of(std::vector<float>{}, DType::f32, {3, 0}, "hollow");
  EXPECT_TRUE(says(refusal_of(make_array_dataset({hollow}, labels)), "hollow is empty"));
  const auto number = array_of(std::vector<float>{1}, DType::f32, Shape(), "number");
  EXPECT_TRUE(says(refusal_of(make_array_dataset({number}, labels)), "number is a single number"));
}

TEST(ArrayDatasetTest, arrays_that_do_not_go_together_are_refused) {
  const auto labels = array_of(std::vector<std::uint8_t>{0, 1}, DType::u8, {2}, "labels");
  EXPECT_TRUE(
      says(refusal_of(make_array_dataset({inputs_of(3)}, labels)), "inputs has 3 samples but labels has 2"));
  const auto complex = array_of(std::vector<double>{0, 1, 2, 3}, DType::c128, {2}, "complex");
  EXPECT_TRUE(
      says(refusal_of(make_array_dataset({complex}, labels)), "complex has dtype c128; complex numbers"));
  EXPECT_TRUE(says(refusal_of(make_array_dataset({}, labels)), "0 inputs; a sample has 1 to 8"));
  EXPECT_TRUE(says(refusal_of(make_array_dataset({inputs_of(2), inputs_of(2)}, labels)),
                   "two parts of a sample are named 'inputs'"));
  Array named = inputs_of(2);
  named.field = "targets";
  EXPECT_TRUE(says(refusal_of(make_array_dataset({named}, labels)), "are named 'targets'"));
}

TEST(ArrayDatasetTest, targets_of_any_rank_that_are_whole_numbers_are_classes) {
  const std::vector<std::int16_t> rows = {0, 4, 2, 1, 9, 3};
  const auto data = make_array_dataset({inputs_of(2)}, array_of(rows, DType::i16, {2, 3}, "rows"));
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ((*data)->classes(), 10u);
  EXPECT_EQ((*data)->targets().shape, Shape{3});
  EXPECT_TRUE(is_sequence((*data)->targets()));
  const std::vector<std::int64_t> stray = {0, 1, 2, -5};
  EXPECT_TRUE(
      says(refusal_of(make_array_dataset({inputs_of(2)}, array_of(stray, DType::i64, {2, 2}, "rows"))),
           "rows: the label of sample 1 is -5"));
}

TEST(ArrayDatasetTest, the_ignored_label_is_no_class_and_no_error) {
  const std::vector<std::int64_t> labels = {0, -100, 2};
  const auto data =
      make_array_dataset({inputs_of(3)}, array_of(labels, DType::i64, {3}, "labels"), {.ignored = -100});
  ASSERT_TRUE(data.ok()) << data.error().message;
  EXPECT_EQ((*data)->classes(), 3u);
  EXPECT_TRUE(says(refusal_of_labels(labels, DType::i64), "--ignore-index"));
  EXPECT_EQ(
      (*make_array_dataset({inputs_of(2)}, array_of(std::vector<std::uint8_t>{1, 255}, DType::u8, {2}, "l"),
                           {.ignored = 255}))
          ->classes(),
      2u);
  EXPECT_TRUE(says(refusal_of_labels(std::vector<std::int64_t>{7, 7}, DType::i64, {.ignored = 7}),
                   "labels: every label is the ignored one, 7"));
}

TEST(ArrayDatasetTest, several_inputs_have_their_names_kinds_and_ids) {
  using Kind = Dataset::Field::Kind;
  Array pixels = array_of(std::vector<std::uint8_t>(8), DType::u8, {2, 4}, "a");
  Array tokens = array_of(std::vector<std::int32_t>{1, 2, 7, 0}, DType::i32, {2, 2}, "b");
  Array offsets = array_of(std::vector<std::int16_t>{-1, 5}, DType::i16, {2}, "c");
  Array mask = array_of(std::vector<std::uint8_t>{0, 1}, DType::boolean, {2}, "d");
  Array wide = array_of(std::vector<double>{1, 2}, DType::f64, {2}, "e");
  pixels.field = "pixels", tokens.field = "tokens", offsets.field = "offsets", mask.field = "mask",
  wide.field = "wide";
  const auto labels = array_of(std::vector<std::uint8_t>{0, 1}, DType::u8, {2}, "labels");
  const auto data = make_array_dataset({pixels, tokens, offsets, mask, wide}, labels).value();
  ASSERT_EQ(data->inputs().size(), 5u);
  std::vector<std::string> names;
  std::vector<Kind> kinds;
  std::vector<std::uint64_t> ids;
  for (const Dataset::Field& input : data->inputs()) {
    names.push_back(input.name);
    kinds.push_back(input.kind());
    ids.push_back(input.ids);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"pixels", "tokens", "offsets", "mask", "wide"}));
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::number, Kind::whole, Kind::whole, Kind::flag, Kind::number}));
  EXPECT_EQ(ids, (std::vector<std::uint64_t>{0, 8, 0, 0, 0}));
  EXPECT_EQ(data->sample_bytes(), 4u + 8 + 2 + 1 + 8 + 1);
  EXPECT_EQ(data->sample_numbers(), 4u + 2 + 1 + 1 + 1 + 1);
  const Gathered gathered = gather_from(*data, {1, 0});
  EXPECT_TRUE(gathered.status.ok());
  EXPECT_EQ(gathered.inputs, std::string(8, '\0') + memory_of(std::vector<std::int32_t>{7, 0, 1, 2}) +
                                 memory_of(std::vector<std::int16_t>{5, -1}) + std::string("\1\0", 2) +
                                 memory_of(std::vector<double>{2, 1}));
  EXPECT_EQ(gathered.targets, std::string("\1\0", 2));
}

RC_GTEST_PROP(ArrayDatasetTest, gathers_each_asked_row_in_the_order_asked, ()) {
  const auto samples = *rc::gen::inRange<std::int64_t>(1, 40);
  const auto width = *rc::gen::inRange<std::int64_t>(1, 9);
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(samples * width));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 37);
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 0; i < samples; ++i) labels.push_back(i);
  const auto data = make_array_dataset({array_of(pixels, DType::u8, {samples, width}, "pixels")},
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
