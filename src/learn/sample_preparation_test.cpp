#include "learn/sample_preparation.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <numeric>

#include "tensor/half.h"

namespace w5xde {
namespace {

const SampleField kImage{.name = "inputs", .dtype = DType::u8, .shape = {2, 3, 4}, .pixels = true};
const SampleField kClass{.name = "targets", .dtype = DType::i64, .shape = {}};

SamplePreparation normalizing(std::vector<float> mean, std::vector<float> deviation) {
  return {.mean = std::move(mean), .deviation = std::move(deviation)};
}

template <class T>
std::vector<T> numbers_in(const SampleTensor& tensor) {
  std::vector<T> numbers(tensor.bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), tensor.bytes.data(), tensor.bytes.size());
  return numbers;
}

template <class T>
SampleTensor tensor_of(const std::vector<T>& numbers, DType dtype, const Shape& shape) {
  return {std::as_bytes(std::span(numbers)), dtype, shape};
}

// What a plain reading of PyTorch's RandomCrop(side, padding) and flip says of one plane.
std::vector<int> cropped(const std::vector<int>& plane, int height, int width, int down, int right,
                         bool flip) {
  std::vector<int> made;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int from_y = y + down, from_x = (flip ? width - 1 - x : x) + right;
      const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
      made.push_back(inside ? plane[static_cast<std::size_t>(from_y * width + from_x)] : 0);
    }
  }
  return made;
}

class PreparationTest : public testing::Test {
 protected:
  SampleTensor prepare(const SamplePreparation& preparation, const SampleField& field,
                       const SampleTensor& from, std::optional<std::uint64_t> slot_seed = std::nullopt) {
    if (!slot_seed) return prepare_samples(preparation, field, from, nullptr, memory_);
    Random draws = preparation_draws(*slot_seed);
    return prepare_samples(preparation, field, from, &draws, memory_);
  }
  static std::string refusal(const SamplePreparation& preparation, const SampleField& field,
                             const SampleField& targets = kClass) {
    const auto input = prepared_input(preparation, {&field, 1}, targets);
    return input.ok() ? "taken" : input.error().message;
  }

  std::vector<std::byte> memory_;
};

TEST_F(PreparationTest, pixels_are_normalized_by_channel_to_the_bits_that_pytorch_gives) {
  std::vector<std::uint8_t> pixels(2 * 24);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{100});
  const auto preparation = normalizing({0.4914F, 0.4465F}, {0.247F, 0.2616F});
  const auto made = prepare(preparation, kImage, tensor_of(pixels, DType::u8, {2, 2, 3, 4}));
  EXPECT_EQ(made.dtype, DType::f32);
  EXPECT_EQ(made.shape, (Shape{2, 2, 3, 4}));
  const auto numbers = numbers_in<float>(made);
  ASSERT_EQ(numbers.size(), pixels.size());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const std::size_t channel = i / 12 % 2;
    const float value = static_cast<float>(pixels[i]) / 255.0F;
    EXPECT_EQ(numbers[i], (value - preparation.mean[channel]) / preparation.deviation[channel]) << i;
  }
}

TEST_F(PreparationTest, numbers_of_every_kind_are_normalized_as_they_are) {
  const SampleField grey{.name = "x", .dtype = DType::f32, .shape = {1, 3}};
  const auto preparation = normalizing({1}, {2});
  const std::vector<float> expected = {0, 1, -1.5};
  const std::vector<float> f32 = {1, 3, -2};
  EXPECT_EQ(numbers_in<float>(prepare(preparation, grey, tensor_of(f32, DType::f32, {1, 1, 3}))), expected);
  const std::vector<double> f64 = {1, 3, -2};
  EXPECT_EQ(numbers_in<float>(prepare(preparation, grey, tensor_of(f64, DType::f64, {1, 1, 3}))), expected);
  std::vector<std::uint16_t> f16, bf16;
  for (const float number : f32) {
    f16.push_back(f16_from_f32(number));
    bf16.push_back(bf16_from_f32(number));
  }
  EXPECT_EQ(numbers_in<float>(prepare(preparation, grey, tensor_of(f16, DType::f16, {1, 1, 3}))), expected);
  EXPECT_EQ(numbers_in<float>(prepare(preparation, grey, tensor_of(bf16, DType::bf16, {1, 1, 3}))), expected);
}

TEST_F(PreparationTest, each_column_of_a_table_has_its_own_numbers_or_all_have_the_same) {
  const SampleField row{.name = "x", .dtype = DType::f32, .shape = {3}};
  const std::vector<float> rows = {1, 20, 300, 2, 30, 400};
  const auto own = prepare(normalizing({1, 20, 300}, {1, 10, 100}), row, tensor_of(rows, DType::f32, {2, 3}));
  EXPECT_EQ(numbers_in<float>(own), (std::vector<float>{0, 0, 0, 1, 1, 1}));
  const auto all = prepare(normalizing({1}, {1}), row, tensor_of(rows, DType::f32, {2, 3}));
  EXPECT_EQ(numbers_in<float>(all), (std::vector<float>{0, 19, 299, 1, 29, 399}));
}

// Every place and both sides are drawn, each about as often, and nothing else.
TEST_F(PreparationTest, a_crop_and_a_flip_are_one_of_all_there_may_be_each_as_likely) {
  const SampleField plane{.name = "x", .dtype = DType::u8, .shape = {3, 4}, .pixels = true};
  std::vector<std::uint8_t> pixels(12);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{1});
  const std::vector<int> whole(pixels.begin(), pixels.end());
  std::map<std::vector<int>, int> seen;
  for (int down = -1; down <= 1; ++down) {
    for (int right = -1; right <= 1; ++right) {
      for (const bool flip : {false, true}) seen[cropped(whole, 3, 4, down, right, flip)] = 0;
    }
  }
  ASSERT_EQ(seen.size(), 18u);
  constexpr int kSlots = 1800;
  for (std::uint64_t slot = 0; slot < kSlots; ++slot) {
    const auto made =
        prepare({.crop_pixels = 1, .flip = true}, plane, tensor_of(pixels, DType::u8, {1, 3, 4}), slot);
    EXPECT_EQ(made.dtype, DType::u8) << "bytes stay bytes";
    const auto numbers = numbers_in<std::uint8_t>(made);
    const auto found = seen.find({numbers.begin(), numbers.end()});
    ASSERT_NE(found, seen.end()) << "of slot " << slot;
    ++found->second;
  }
  for (const auto& [image, times] : seen) {
    EXPECT_GT(times, 50);
    EXPECT_LT(times, 150);
  }
}

TEST_F(PreparationTest, all_channels_of_an_image_move_alike_and_the_border_is_black_before_it_is_normalized) {
  const SampleField two{.name = "x", .dtype = DType::f32, .shape = {2, 3, 3}};
  std::vector<float> image(18);
  std::iota(image.begin(), image.end(), 1.F);
  SamplePreparation preparation = normalizing({0.5F, 2}, {2, 4});
  const SamplePreparation only_moved{.crop_pixels = 2, .flip = true};
  preparation.crop_pixels = 2;
  preparation.flip = true;
  for (std::uint64_t slot = 0; slot < 40; ++slot) {
    const auto tensor = tensor_of(image, DType::f32, {1, 2, 3, 3});
    const auto moved = numbers_in<float>(prepare(only_moved, two, tensor, slot));
    const auto made = numbers_in<float>(prepare(preparation, two, tensor, slot));
    for (std::size_t i = 0; i < 9; ++i) {
      EXPECT_EQ(moved[i + 9], moved[i] == 0 ? 0 : moved[i] + 9);
      EXPECT_EQ(made[i], (moved[i] - 0.5F) / 2);
      EXPECT_EQ(made[i + 9], (moved[i + 9] - 2) / 4);
    }
  }
}

TEST_F(PreparationTest, a_sample_s_draws_depend_on_its_place_in_the_slot_and_the_slot_s_seed_alone) {
  const SampleField plane{.name = "x", .dtype = DType::u8, .shape = {6, 6}, .pixels = true};
  std::vector<std::uint8_t> pixels(8 * 36);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  const SamplePreparation preparation{.crop_pixels = 3, .flip = true};
  const auto all =
      numbers_in<std::uint8_t>(prepare(preparation, plane, tensor_of(pixels, DType::u8, {8, 6, 6}), 5));
  const std::vector<std::uint8_t> first_three(pixels.begin(), pixels.begin() + 3 * 36);
  const auto few =
      numbers_in<std::uint8_t>(prepare(preparation, plane, tensor_of(first_three, DType::u8, {3, 6, 6}), 5));
  EXPECT_TRUE(std::equal(few.begin(), few.end(), all.begin()));
  const auto other =
      numbers_in<std::uint8_t>(prepare(preparation, plane, tensor_of(pixels, DType::u8, {8, 6, 6}), 6));
  EXPECT_NE(other, all);
  // Dropout draws from the slot's seed itself.
  EXPECT_NE(preparation_draws(5).next(), Random(5).next());
}

TEST_F(PreparationTest, evaluation_is_normalized_and_not_augmented) {
  const SampleField plane{.name = "x", .dtype = DType::f32, .shape = {3, 3}};
  const std::vector<float> image = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  SamplePreparation preparation = normalizing({1}, {2});
  preparation.crop_pixels = 2;
  preparation.flip = true;
  EXPECT_EQ(numbers_in<float>(prepare(preparation, plane, tensor_of(image, DType::f32, {1, 3, 3}))),
            (std::vector<float>{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4}));
}

TEST_F(PreparationTest, what_cannot_be_prepared_is_refused_with_what_to_do) {
  const SamplePreparation crop{.crop_pixels = 2}, flip{.flip = true};
  EXPECT_EQ(refusal(crop, kImage), "taken");
  const auto expect = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  };
  expect(refusal({.crop_pixels = 3}, kImage), "must be less than 3");
  const SampleField table{.name = "x", .dtype = DType::f32, .shape = {8}};
  expect(refusal(flip, table), "'x' of [8] is no image");
  expect(refusal(flip, {.name = "tokens", .dtype = DType::i32, .shape = {8}, .ids = 9}),
         "augment: it is done to the one input that is numbers, and these samples have none");
  expect(refusal(normalizing({0}, {1}), {.name = "tokens", .dtype = DType::i32, .shape = {8}}),
         "normalize: ");
  expect(refusal(flip, kImage, {.name = "mask", .dtype = DType::u8, .shape = {3, 4}}),
         "would have to be cropped and flipped as the image is");
  expect(refusal(normalizing({0, 0, 0}, {1, 1, 1}), kImage),
         "3 means and deviations for 'inputs' of [2, 3, 4], which has 2 channels; give 2 of each, or one");
  expect(refusal(normalizing({0, 0}, {1, 1}), {.name = "x", .dtype = DType::f32, .shape = {3, 4}}),
         "which has one channel; give one of each for all");
  expect(refusal(normalizing({0, 0}, {1}), kImage), "as many of both");
  expect(refusal(normalizing({0}, {0}), kImage), "deviations are more than 0");
  const SampleField both[] = {kImage, kImage};
  expect(prepared_input(flip, both, kClass).error().message, "these samples have 2");
  const SampleField with_ids[] = {{.name = "ids", .dtype = DType::i32, .shape = {8}}, kImage};
  EXPECT_EQ(prepared_input(flip, with_ids, kClass).value(), 1u);
}

TEST_F(PreparationTest, a_model_is_told_of_what_it_is_given) {
  const SampleField told = prepared_field(normalizing({0}, {1}), kImage);
  EXPECT_EQ(told.dtype, DType::f32);
  EXPECT_FALSE(told.pixels);
  EXPECT_EQ(prepared_field({.flip = true}, kImage), kImage);
}

}  // namespace
}  // namespace w5xde
