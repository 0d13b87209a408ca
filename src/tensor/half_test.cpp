#include "tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"

namespace w5xde {
namespace {

std::vector<std::uint16_t> all_halves() {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  return all;
}

// Bit patterns of floats: random ones, and every f16 and bf16 with its neighbours and the ties between them.
std::vector<float> floats_to_try() {
  std::vector<float> floats;
  const auto add = [&](std::uint32_t bits) { floats.push_back(std::bit_cast<float>(bits)); };
  for (const std::uint16_t half : all_halves()) {
    const auto f16 = std::bit_cast<std::uint32_t>(f32_from_f16(half));
    const auto bf16 = std::uint32_t{half} << 16;
    for (const std::uint32_t delta : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
      add(f16 + delta);
      add(f16 - delta);
      add(bf16 + delta);
    }
  }
  Random random(7);
  for (int i = 0; i < 1'000'000; ++i) add(static_cast<std::uint32_t>(random.next()));
  return floats;
}

// The definition: the nearest of two candidates, the even one on a tie. `widen` maps 16 bits to the value
// they stand for.
template <class Widen>
bool is_nearest(float value, std::uint16_t narrowed, Widen widen) {
  if (std::isnan(value)) return std::isnan(widen(narrowed));
  const double got = widen(narrowed);
  if (std::signbit(value) != std::signbit(widen(narrowed))) return false;
  const double error = std::abs(got - static_cast<double>(value));
  for (const int step : {-1, 1}) {
    const auto neighbour_bits = static_cast<std::uint16_t>(narrowed + step);
    const float neighbour = widen(neighbour_bits);
    if (std::isnan(neighbour) || std::signbit(neighbour) != std::signbit(value)) continue;
    const double neighbour_error = std::abs(static_cast<double>(neighbour) - static_cast<double>(value));
    if (neighbour_error < error) return false;
    if (neighbour_error == error && (narrowed & 1) != 0) return false;
  }
  return true;
}

TEST(HalfTest, every_f16_and_bf16_survives_the_way_up_and_down) {
  for (const std::uint16_t half : all_halves()) {
    const bool f16_nan = (half & 0x7fffu) > 0x7c00u;
    const bool bf16_nan = (half & 0x7fffu) > 0x7f80u;
    EXPECT_EQ(f16_from_f32(f32_from_f16(half)), f16_nan ? half | 0x200u : half);
    EXPECT_EQ(bf16_from_f32(f32_from_bf16(half)), bf16_nan ? half | 0x40u : half);
  }
}

TEST(HalfTest, known_values_have_their_known_bits) {
  EXPECT_EQ(f16_from_f32(1.0f), 0x3c00u);
  EXPECT_EQ(f16_from_f32(-2.5f), 0xc100u);
  EXPECT_EQ(f16_from_f32(65504.0f), 0x7bffu);
  EXPECT_EQ(f16_from_f32(65519.99f), 0x7bffu);
  EXPECT_EQ(f16_from_f32(65520.0f), 0x7c00u);
  EXPECT_EQ(f16_from_f32(0x1.0p-24f), 0x0001u);
  EXPECT_EQ(f16_from_f32(0x1.0p-25f), 0x0000u);
  EXPECT_EQ(f16_from_f32(-0.0f), 0x8000u);
  EXPECT_EQ(bf16_from_f32(1.0f), 0x3f80u);
  EXPECT_EQ(bf16_from_f32(std::numeric_limits<float>::max()), 0x7f80u);
  EXPECT_EQ(bf16_from_f32(-std::numeric_limits<float>::infinity()), 0xff80u);
}

TEST(HalfTest, rounding_is_to_the_nearest_and_ties_go_to_even) {
  for (const float value : floats_to_try()) {
    const bool f16_range = std::abs(value) < 65504.0f;
    if (f16_range) {
      ASSERT_TRUE(is_nearest(value, f16_from_f32(value), f32_from_f16)) << value;
    }
    if (std::abs(value) < 3.38e38f) {
      ASSERT_TRUE(is_nearest(value, bf16_from_f32(value), f32_from_bf16)) << value;
    }
  }
}

TEST(HalfTest, arrays_convert_to_the_same_bits_as_single_values) {
  const std::vector<float> floats = floats_to_try();
  std::vector<std::uint16_t> halves(floats.size());
  convert_f32_to_f16(floats, halves);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    ASSERT_EQ(halves[i], f16_from_f32(floats[i])) << std::hex << std::bit_cast<std::uint32_t>(floats[i]);
  }

  const auto all = all_halves();
  std::vector<float> widened(all.size());
  convert_f16_to_f32(all, widened);
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(widened[i]), std::bit_cast<std::uint32_t>(f32_from_f16(all[i])))
        << i;
  }
}

TEST(HalfTest, lengths_that_are_no_multiple_of_the_vector_width_are_converted_to_the_end) {
  for (std::size_t length = 0; length < 20; ++length) {
    const std::vector<float> floats(length, 1.5f);
    std::vector<std::uint16_t> halves(length, 0xffff);
    convert_f32_to_f16(floats, halves);
    EXPECT_EQ(halves, std::vector<std::uint16_t>(length, 0x3e00));
  }
}

}  // namespace
}  // namespace w5xde
