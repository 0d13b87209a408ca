#include "local_pool/channel_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data/array_dataset.h"

namespace w5xde {
namespace {

// Of `samples` with inputs of this shape, whose numbers are `value(sample, i)`.
template <class T, class Value>
SharedDataset data_of(std::int64_t samples, DType dtype, std::vector<std::int64_t> dims, const Value& value) {
  dims.insert(dims.begin(), samples);
  const Shape shape = Shape::make(dims).value();
  const auto numbers = std::make_shared<std::vector<T>>(shape.elements());
  const std::size_t each = numbers->size() / static_cast<std::size_t>(samples);
  for (std::size_t i = 0; i < numbers->size(); ++i) (*numbers)[i] = static_cast<T>(value(i / each, i % each));
  const auto labels = std::make_shared<std::vector<std::int64_t>>(samples);
  std::vector<Array> inputs;
  inputs.push_back({"x", TensorView(std::as_bytes(std::span(*numbers)), dtype, shape), numbers, "x"});
  return make_array_dataset(std::move(inputs), {"y",
                                                TensorView(std::as_bytes(std::span(*labels)), DType::i64,
                                                           Shape::make({&samples, 1}).value()),
                                                labels, "y"})
      .value();
}

TEST(ChannelStatistics, are_mean_and_deviation_of_each_channel_and_one_where_all_is_the_same) {
  const auto data = data_of<float>(10, DType::f32, {3, 2, 2}, [](std::size_t sample, std::size_t i) {
    return i < 4 ? 7.0 : i < 8 ? static_cast<double>(sample) : 100.0 * static_cast<double>(i % 2);
  });
  SamplePreparation preparation{.flip = true};
  ASSERT_TRUE(measure_normalization(*data, preparation).ok());
  ASSERT_EQ(preparation.mean.size(), 3u);
  EXPECT_EQ(preparation.mean, (std::vector<float>{7, 4.5, 50}));
  EXPECT_EQ(preparation.deviation[0], 1);
  EXPECT_FLOAT_EQ(preparation.deviation[1], std::sqrt(8.25F));
  EXPECT_FLOAT_EQ(preparation.deviation[2], 50);
  EXPECT_TRUE(preparation.flip);
}

TEST(ChannelStatistics, of_a_table_are_those_of_its_columns_and_of_pixels_from_0_to_1) {
  const auto table = data_of<double>(100, DType::f64, {2}, [](std::size_t sample, std::size_t i) {
    return i == 0 ? 5.0 : static_cast<double>(sample % 2);
  });
  SamplePreparation preparation;
  ASSERT_TRUE(measure_normalization(*table, preparation).ok());
  EXPECT_EQ(preparation.mean, (std::vector<float>{5, 0.5}));
  EXPECT_EQ(preparation.deviation, (std::vector<float>{1, 0.5}));
  const auto grey =
      data_of<std::uint8_t>(4, DType::u8, {2, 2}, [](std::size_t, std::size_t i) { return i < 2 ? 0 : 255; });
  SamplePreparation of_pixels;
  ASSERT_TRUE(measure_normalization(*grey, of_pixels).ok());
  EXPECT_EQ(of_pixels.mean, std::vector<float>{0.5});
  EXPECT_EQ(of_pixels.deviation, std::vector<float>{0.5});
}

TEST(ChannelStatistics, of_small_numbers_are_their_own_and_one_only_where_all_is_the_same) {
  const auto data = data_of<float>(100, DType::f32, {3}, [](std::size_t sample, std::size_t i) {
    return i == 0 ? (sample % 2 == 0 ? 4e-7 : 6e-7) : i == 1 ? 5e-7 : 0.0;
  });
  SamplePreparation preparation;
  ASSERT_TRUE(measure_normalization(*data, preparation).ok());
  EXPECT_FLOAT_EQ(preparation.mean[0], 5e-7F);
  EXPECT_FLOAT_EQ(preparation.deviation[0], 1e-7F);
  EXPECT_EQ(preparation.deviation[1], 1);
  EXPECT_EQ(preparation.deviation[2], 1);
}

// Of more samples than are looked at, those that are lie evenly among all.
TEST(ChannelStatistics, of_many_samples_are_those_of_some_from_all_over) {
  const auto data = data_of<float>(30'000, DType::f32, {1},
                                   [](std::size_t sample, std::size_t) { return sample < 15'000 ? 0 : 1; });
  SamplePreparation preparation;
  ASSERT_TRUE(measure_normalization(*data, preparation).ok());
  EXPECT_EQ(preparation.mean, std::vector<float>{0.5});
}

}  // namespace
}  // namespace w5xde
