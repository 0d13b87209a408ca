#include "learn/prepared_engine.h"

#include <gtest/gtest.h>

#include <cstring>

#include "learn/sample_preparation.h"

namespace w5xde {
namespace {

// Gives back what it is given: the first floats of a contribution are the slot's input and the addends, added
// up.
class EchoEngine final : public Engine {
 public:
  explicit EchoEngine(ModelOptions made_with) : options(std::move(made_with)) {
    description_.parameters = BlockLayout::make({{"w", {32}}}, 1000).value();
    description_.buffers = BlockLayout::make({}, 1000).value();
  }
  std::string name() const override { return "echo"; }
  const ModelDescription& description() const override { return description_; }
  bool uses_cores() const override { return true; }
  Status initialise(std::uint64_t, std::span<float>) override { return {}; }
  Result<Sums> compute(std::span<const float>, const Slot& slot, Addends addends,
                       std::span<float> contribution) override {
    std::vector<float> sum(contribution.size());
    add(slot.samples.inputs, sum);
    for (const float* addend : addends) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += addend[i];
    }
    std::ranges::copy(sum, contribution.begin());
    return Sums{.samples = 1};
  }
  Result<Evaluation> evaluate(std::span<const float>, const SlotSamples& samples) override {
    std::vector<float> sum(description_.floats());
    add(samples.inputs, sum);
    return Evaluation{.loss_sum = sum[0]};
  }
  Result<Outputs> predict(std::span<const float>, const SampleInputs& inputs) override {
    std::vector<float> sum(description_.floats());
    add(inputs, sum);
    return Outputs{inputs[0].shape, sum};
  }

  ModelOptions options;

 private:
  static void add(const SampleInputs& inputs, std::span<float> to) {
    const SampleTensor& last = inputs[inputs.size() - 1];
    if (last.dtype != DType::f32) {
      to[0] = -1;
      return;
    }
    std::vector<float> values(last.shape.elements());
    std::memcpy(values.data(), last.bytes.data(), last.bytes.size());
    for (std::size_t i = 0; i < values.size(); ++i) to[i] += values[i];
  }

  ModelDescription description_;
};

class PreparedEngineTest : public testing::Test {
 protected:
  PreparedEngineTest() {
    ModelOptions options{.model = "echo",
                         .inputs = {{.name = "ids", .dtype = DType::i32, .shape = {1}},
                                    {.name = "x", .dtype = DType::u8, .shape = {4, 4}, .pixels = true}},
                         .targets = {.name = "y", .dtype = DType::u8, .shape = {}}};
    options.preparation = preparation_;
    engine_ = PreparedEngine::make(options, [this](const ModelOptions& then) {
                auto made = std::make_unique<EchoEngine>(then);
                echo_ = made.get();
                return Result<std::unique_ptr<Engine>>(std::move(made));
              }).value();
    for (std::size_t i = 0; i < pixels_.size(); ++i) pixels_[i] = static_cast<std::byte>(i * 15);
  }

  SlotSamples samples(DType dtype = DType::u8) const {
    return {{{ids_, DType::i32, {1, 1}}, {pixels_, dtype, {1, 4, 4}}}, {ids_, DType::u8, {1}}};
  }
  // As the pure functions say.
  std::vector<float> expected(std::uint64_t seed) const {
    std::vector<std::byte> memory;
    Random draws = preparation_draws(seed);
    const auto made = prepare_samples(preparation_, {.name = "x", .dtype = DType::u8, .shape = {4, 4}},
                                      {pixels_, DType::u8, {1, 4, 4}}, &draws, memory);
    std::vector<float> values(16);
    std::memcpy(values.data(), made.bytes.data(), made.bytes.size());
    return values;
  }

  SamplePreparation preparation_{.mean = {0.5F}, .deviation = {0.25F}, .crop_pixels = 2, .flip = true};
  std::vector<std::byte> pixels_ = std::vector<std::byte>(16);
  std::vector<std::byte> ids_ = std::vector<std::byte>(4);
  EchoEngine* echo_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

TEST_F(PreparedEngineTest, a_model_is_made_for_samples_as_they_come_to_it) {
  EXPECT_EQ(echo_->options.preparation, SamplePreparation());
  EXPECT_EQ(echo_->options.inputs[1].dtype, DType::f32);
  EXPECT_FALSE(echo_->options.inputs[1].pixels);
  EXPECT_EQ(echo_->options.inputs[0].dtype, DType::i32);
}

TEST_F(PreparedEngineTest, each_slot_is_prepared_with_its_own_seed_alone_or_added_to_another) {
  std::vector<float> one(32), two(32), both(32);
  ASSERT_TRUE(engine_->compute({}, {samples(), 11}, {}, one).ok());
  ASSERT_TRUE(engine_->compute({}, {samples(), 12}, {}, two).ok());
  const float* const addends[] = {one.data()};
  ASSERT_TRUE(engine_->compute({}, {samples(), 12}, addends, both).ok());
  const auto first = expected(11), second = expected(12);
  EXPECT_NE(first, second);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(one[i], first[i]);
    EXPECT_EQ(two[i], second[i]);
    EXPECT_EQ(both[i], first[i] + second[i]);
  }
}

TEST_F(PreparedEngineTest, evaluation_and_outputs_see_the_image_where_it_is) {
  const auto outputs = engine_->predict({}, samples().inputs).value();
  for (std::size_t i = 0; i < 16; ++i)
    EXPECT_EQ(outputs.values[i], (static_cast<float>(i * 15) / 255.0F - 0.5F) / 0.25F);
  EXPECT_EQ(engine_->evaluate({}, samples())->loss_sum, (0.F - 0.5F) / 0.25F);
}

TEST_F(PreparedEngineTest, what_is_no_image_of_this_shape_comes_to_the_engine_as_it_is) {
  SlotSamples other = samples();
  other.inputs = {{ids_, DType::i32, {1, 1}}, {pixels_, DType::u8, {1, 16}}};
  EXPECT_EQ(engine_->evaluate({}, other)->loss_sum, -1);
  EXPECT_EQ(engine_->evaluate({}, samples(DType::i8))->loss_sum, -1);
}

}  // namespace
}  // namespace w5xde
