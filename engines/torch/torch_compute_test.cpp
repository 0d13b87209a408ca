// --compute bf16: what stays f32, what stays exact, and that it learns.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "engine_on_test.h"

namespace w5xde {
namespace {

const Shape kImage{3, 8, 12};
const Shape kEight{8};
constexpr std::int64_t kTokens = 6;
constexpr std::uint32_t kClasses = 5;

struct Case {
  std::string model;
  Shape shape;
  bool text = false;

  ModelOptions options(DType compute) const {
    ModelOptions made = options_of(model, shape, kClasses);
    if (text) {
      made.inputs[0] = {.name = "inputs", .dtype = DType::i64, .shape = shape, .ids = kClasses};
      made.targets.shape = shape;
    }
    made.compute = compute;
    return made;
  }
};

const Case kCases[] = {{"mlp:8,16,5", kEight},
                       {"lenet", Shape{1, 28, 28}},
                       {"vit:4,2,2,8", kImage},
                       {"vit:4,1,2,8,dropout=0.5", kImage},
                       {"resnet-small", Shape{9, 9}},
                       {"resnet18", kImage},
                       {"gpt:2,2,8,6", Shape{kTokens}, true},
                       {"gpt:1,1,4,6,dropout=0.5", Shape{kTokens}, true},
                       {"lstm:2,8", Shape{kTokens}, true},
                       {"normalised.pt", kEight},
                       {"recurrent.pt", Shape{4, 6}}};

// Random inputs that own their memory: numbers, or ids with a target for each.
struct Inputs {
  Inputs(const Case& test, std::int64_t count, std::uint64_t seed)
      : text(test.text), numbers(count, test.shape, test.text ? 1 : 5, seed) {
    if (!text) return;
    Random random(seed);
    for (auto* to : {&ids, &targets}) {
      to->resize(numbers.shape.elements());
      for (std::int64_t& id : *to) id = static_cast<std::int64_t>(random.below(kClasses));
    }
  }
  SlotSamples slot() const {
    if (!text) return numbers.slot();
    return {.inputs = {{std::as_bytes(std::span(ids)), DType::i64, numbers.shape}},
            .targets = {std::as_bytes(std::span(targets)), DType::i64, numbers.shape}};
  }

  bool text;
  Samples numbers;
  std::vector<std::int64_t> ids, targets;
};

// |a - b| / |b|, Euclidean.
double distance(const Block& a, const Block& b) {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < b.values().size(); ++i) {
    difference += std::pow(double{a.values()[i]} - double{b.values()[i]}, 2);
    norm += std::pow(double{b.values()[i]}, 2);
  }
  return std::sqrt(difference / norm);
}

TEST(TorchCompute, in_bf16_every_model_s_gradients_are_near_those_in_f32_and_are_not_them) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.model);
    EngineOnTest full(test.options(DType::f32)), half(test.options(DType::bf16));
    EXPECT_EQ(full.state, half.state) << "parameters are f32, to the last bit";
    const Inputs inputs(test, 8, 1);
    Sums of_full, of_half;
    const Block expected = full.contribution(inputs.slot(), 7, &of_full);
    const Block contribution = half.contribution(inputs.slot(), 7, &of_half);
    EXPECT_NE(contribution, expected);
    // A BatchNorm over few values makes much of little.
    EXPECT_LT(distance(contribution, expected), test.model.starts_with("resnet") ? 0.5 : 0.1);
    EXPECT_NEAR(of_half.loss, of_full.loss, 0.05 * of_full.loss);
    const auto evaluated = half.engine->evaluate(half.state.values(), inputs.slot()).value();
    const auto reference = full.engine->evaluate(full.state.values(), inputs.slot()).value();
    EXPECT_NEAR(evaluated.loss_sum, reference.loss_sum, 0.05 * reference.loss_sum);
    EXPECT_NE(evaluated.loss_sum, reference.loss_sum);
    // In f32 a thread computes as before, whatever it did in between.
    EXPECT_EQ(full.contribution(inputs.slot(), 7), expected);
  }
}

// torch.autocast keeps the parameters that it has cast; here they change in their place.
TEST(TorchCompute, a_contribution_in_bf16_follows_from_state_samples_and_seed_alone) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.model);
    EngineOnTest on_test(test.options(DType::bf16));
    const Inputs inputs(test, 6, 1), others(test, 4, 2);
    const Block first = on_test.contribution(inputs.slot(), 7);
    on_test.contribution(others.slot(), 8);
    ASSERT_TRUE(on_test.engine->evaluate(on_test.state.values(), others.slot()).ok());
    EXPECT_EQ(on_test.contribution(inputs.slot(), 7), first);
    EngineOnTest fresh(test.options(DType::bf16));
    const auto parameters = on_test.engine->description().parameters->floats();
    for (EngineOnTest* engine : {&on_test, &fresh}) {
      for (float& value : engine->state.values().first(parameters)) value *= 1.25F;
    }
    const Block moved = on_test.contribution(inputs.slot(), 7);
    EXPECT_NE(moved, first);
    EXPECT_EQ(fresh.contribution(inputs.slot(), 7), moved);
  }
}

TEST(TorchCompute, lanes_that_compute_in_bf16_side_by_side_change_no_bit) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.model);
    EngineOnTest one(test.options(DType::bf16)), other(test.options(DType::bf16));
    const Inputs inputs(test, 4, 1);
    const Block expected = one.contribution(inputs.slot(), 7);
    std::atomic<int> wrong = 0;
    const auto lane = [&](EngineOnTest& engine) {
      for (int i = 0; i < 10; ++i) wrong += engine.contribution(inputs.slot(), 7) == expected ? 0 : 1;
    };
    std::thread beside([&] { lane(other); });
    lane(one);
    beside.join();
    EXPECT_EQ(wrong, 0);
  }
}

// Points around a corner of a cube for each class.
Samples clusters(std::uint64_t seed) {
  Samples samples(32, kEight, 5, seed);
  for (std::size_t i = 0; i < samples.inputs.size(); ++i) {
    const auto target = static_cast<std::size_t>(samples.targets[i / 8]);
    samples.inputs[i] = 0.8F * samples.inputs[i] + (i % 8 == target ? 1.0F : 0.0F);
  }
  return samples;
}

TEST(TorchCompute, a_model_learns_in_bf16_what_it_learns_in_f32) {
  const auto accuracy_in = [](DType compute) {
    ModelOptions options = options_of("mlp:8,32,5", kEight, 5);
    options.compute = compute;
    EngineOnTest on_test(options);
    for (std::uint64_t step = 0; step < 300; ++step) {
      const Block gradient = on_test.contribution(clusters(step).slot(), step);
      for (std::size_t i = 0; i < gradient.values().size(); ++i)
        on_test.state.values()[i] -= 0.3F / 32 * gradient.values()[i];
    }
    double correct = 0;
    for (std::uint64_t batch = 0; batch < 20; ++batch) {
      correct += static_cast<double>(
          on_test.engine->evaluate(on_test.state.values(), clusters(1000 + batch).slot())->correct);
    }
    return correct / (20 * 32);
  };
  const double full = accuracy_in(DType::f32);
  EXPECT_GT(full, 0.8);
  EXPECT_NEAR(accuracy_in(DType::bf16), full, 0.02);
}

TEST(TorchCompute, what_a_machine_cannot_compute_in_is_refused) {
  for (const DType other : {DType::f16, DType::f64, DType::u8}) {
    ModelOptions options = options_of("mlp:8,5", kEight, 5);
    options.compute = other;
    const auto made = torch_library().make(options, {});
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().message.find("it is f32 or bf16"), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace w5xde
