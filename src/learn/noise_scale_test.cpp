#include "learn/noise_scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace w5xde {
namespace {

// Sums of gradients of n samples: n times the truth, and noise of variance n in every float.
class Gradients {
 public:
  Gradients(double signal, double noise_a_sample, std::size_t floats, std::uint64_t seed)
      : mean_(std::sqrt(signal / static_cast<double>(floats))),
        deviation_(std::sqrt(noise_a_sample / static_cast<double>(floats))),
        floats_(floats),
        random_(seed) {}

  std::vector<float> sum_of(std::uint64_t samples) {
    const auto n = static_cast<double>(samples);
    std::vector<float> sum(floats_);
    for (float& value : sum)
      value = static_cast<float>(n * mean_ + std::sqrt(n) * deviation_ * random_.normal());
    return sum;
  }

 private:
  double mean_, deviation_;
  std::size_t floats_;
  Random random_;
};

NoiseScale after(unsigned steps, Gradients gradients, std::uint64_t left_samples, std::uint64_t right_samples,
                 ThreadPool* pool = nullptr) {
  NoiseScale scale(50, {});
  for (unsigned step = 0; step < steps; ++step) {
    const auto left = gradients.sum_of(left_samples), right = gradients.sum_of(right_samples);
    scale.add({left, {.samples = left_samples}}, {right, {.samples = right_samples}}, left.size(), pool);
  }
  return scale;
}

TEST(NoiseScaleTest, it_comes_within_a_fifth_of_the_noise_that_gradients_were_made_with) {
  struct Case {
    double signal, noise;
    std::uint64_t left, right;
  };
  // Below, at and above the batch; halves that are alike, and those of six slots of 24.
  for (const Case& made :
       {Case{1, 64, 128, 128}, Case{4, 1024, 128, 128}, Case{0.01, 20, 128, 128}, Case{1, 300, 96, 48}}) {
    const NoiseScale scale = after(200, Gradients(made.signal, made.noise, 1000, 7), made.left, made.right);
    const double truth = made.noise / made.signal;
    EXPECT_NEAR(scale.means().noise, made.noise, 0.2 * made.noise);
    EXPECT_NEAR(scale.means().signal, made.signal, 0.2 * made.signal);
    EXPECT_NEAR(scale.value(), truth, 0.2 * truth);
    EXPECT_TRUE(scale.at_least(0.8 * truth));
    EXPECT_FALSE(scale.at_least(1.25 * truth));
  }
}

TEST(NoiseScaleTest, it_follows_gradients_whose_noise_changes) {
  NoiseScale scale = after(100, Gradients(1, 100, 1000, 3), 64, 64);
  EXPECT_NEAR(scale.value(), 100, 20);
  Gradients noisier(1, 1000, 1000, 4);
  for (int step = 0; step < 300; ++step) {
    const auto left = noisier.sum_of(64), right = noisier.sum_of(64);
    scale.add({left, {.samples = 64}}, {right, {.samples = 64}}, left.size(), nullptr);
  }
  EXPECT_NEAR(scale.value(), 1000, 200);
}

TEST(NoiseScaleTest, a_signal_that_is_lost_in_the_noise_is_more_than_any_number) {
  const std::vector<float> left = {1, -2}, right = {-1, 2};
  NoiseScale scale(50, {});
  EXPECT_FALSE(scale.at_least(1)) << "nothing was measured yet";
  scale.add({left, {.samples = 1}}, {right, {.samples = 1}}, 2, nullptr);
  EXPECT_TRUE(std::isnan(scale.value()));
  EXPECT_TRUE(scale.at_least(1e12));
}

TEST(NoiseScaleTest, halves_that_agree_have_no_noise) {
  const std::vector<float> left = {2, 4, 100}, right = {1, 2, -100};
  NoiseScale scale(50, {});
  scale.add({left, {.samples = 2}}, {right, {.samples = 1}}, 2, nullptr);  // the third is no gradient
  EXPECT_EQ(scale.means().noise, 0);
  EXPECT_EQ(scale.means().signal, 5);
  EXPECT_EQ(scale.value(), 0);
  EXPECT_FALSE(scale.at_least(1));
}

TEST(NoiseScaleTest, it_goes_on_from_its_means_and_is_the_same_for_any_number_of_threads) {
  ThreadPool pool(3);
  const Gradients gradients(1, 50, 300'000, 9);
  const NoiseScale alone = after(2, gradients, 8, 8);
  const NoiseScale shared = after(2, gradients, 8, 8, &pool);
  EXPECT_EQ(alone.means().noise, shared.means().noise);
  EXPECT_EQ(alone.means().signal, shared.means().signal);
  const NoiseScale restored(50, alone.means());
  EXPECT_EQ(restored.value(), alone.value());
  EXPECT_EQ(restored.means().steps, 2u);
}

}  // namespace
}  // namespace w5xde
