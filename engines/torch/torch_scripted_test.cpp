// What scripted models may do, and what they are refused for, as a node sees it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "engine_on_test.h"
#include "w5xde/no_gradient.h"

namespace w5xde {
namespace {

const Shape kEight{8};

std::string refusal_of(EngineOnTest& on_test, const SlotSamples& samples) {
  Block block(on_test.engine->description().floats());
  const auto computed = on_test.engine->compute(on_test.state.values(), samples, 1, block.values());
  return computed.ok() ? "computed" : computed.error().message;
}

std::string refusal_of_evaluation(EngineOnTest& on_test, const SlotSamples& samples) {
  const auto evaluated = on_test.engine->evaluate(on_test.state.values(), samples);
  return evaluated.ok() ? "evaluated" : evaluated.error().message;
}

TEST(ScriptedModel, one_that_changes_what_does_not_travel_is_refused_with_its_name) {
  const std::pair<const char*, const char*> cases[] = {{"counter", "'calls'"},
                                                       {"list", "'seen'"},
                                                       {"tensor", "'last'"},
                                                       {"tensor_in_place", "'last'"},
                                                       {"integers", "'histogram'"},
                                                       {"doubles", "'average'"},
                                                       {"parameter", "'layer.weight'"},
                                                       {"frozen_parameter", "'frozen.weight'"}};
  const Samples samples(6, kEight, 5, 1);
  for (const auto& [what, name] : cases) {
    SCOPED_TRACE(what);
    EngineOnTest trained("remembers_" + std::string(what) + ".pt", kEight, 5);
    const std::string refusal = refusal_of(trained, samples.slot());
    EXPECT_NE(refusal.find("forward changes " + std::string(name) + ","), std::string::npos) << refusal;
    EXPECT_NE(refusal.find("register_buffer"), std::string::npos) << refusal;
    // What it changed is still there, so that it is refused for good.
    EXPECT_EQ(refusal_of(trained, samples.slot()), refusal);
    EXPECT_EQ(refusal_of_evaluation(trained, samples.slot()), refusal);
    EngineOnTest evaluated("remembers_" + std::string(what) + ".pt", kEight, 5);
    EXPECT_NE(refusal_of_evaluation(evaluated, samples.slot()).find(name), std::string::npos);
  }
}

// As a node has the coordinator's parameters where both are on one machine.
class ReadOnly {
 public:
  explicit ReadOnly(std::span<const float> values)
      : bytes_(values.size_bytes()),
        memory_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::memcpy(memory_, values.data(), bytes_);
    ::mprotect(memory_, bytes_, PROT_READ);
  }
  ~ReadOnly() { ::munmap(memory_, bytes_); }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;

  std::span<const float> values() const {
    return {static_cast<const float*>(memory_), bytes_ / sizeof(float)};
  }

 private:
  std::size_t bytes_;
  void* memory_;
};

TEST(ScriptedModel, one_that_changes_parameters_is_refused_where_they_cannot_be_written) {
  const Samples samples(6, kEight, 5, 1);
  EngineOnTest on_test("remembers_parameter.pt", kEight, 5), other("remembers_parameter.pt", kEight, 5);
  const ReadOnly state(on_test.state.values());
  Block block(on_test.engine->description().floats());
  const auto computed = on_test.engine->compute(state.values(), samples.slot(), 1, block.values());
  ASSERT_FALSE(computed.ok());
  EXPECT_NE(computed.error().message.find("'layer.weight'"), std::string::npos);
  const auto evaluated = other.engine->evaluate(state.values(), samples.slot());
  ASSERT_FALSE(evaluated.ok());
  EXPECT_NE(evaluated.error().message.find("'layer.weight'"), std::string::npos);
}

TEST(ScriptedModel, one_that_draws_in_evaluation_is_scored_the_same_by_whoever_evaluates) {
  const Samples samples(6, kEight, 5, 1);
  EngineOnTest first("noisy.pt", kEight, 5), second("noisy.pt", kEight, 5);
  const auto score = [&](EngineOnTest& on_test) {
    return on_test.engine->evaluate(on_test.state.values(), samples.slot()).value().loss_sum;
  };
  const double expected = score(first);
  // Another has drawn other numbers before.
  for (std::uint64_t seed = 1; seed <= 3; ++seed) (void)second.contribution(samples.slot(), seed);
  EXPECT_EQ(score(second), expected);
  EXPECT_EQ(score(first), expected);
}

TEST(ScriptedModel, one_that_changes_something_in_evaluation_only_is_refused_there) {
  EngineOnTest on_test("remembers_in_evaluation.pt", kEight, 5);
  const Samples samples(6, kEight, 5, 1);
  EXPECT_EQ(refusal_of(on_test, samples.slot()), "computed");
  EXPECT_NE(refusal_of_evaluation(on_test, samples.slot()).find("'calls'"), std::string::npos);
}

TEST(ScriptedModel, one_that_changes_nothing_or_buffers_that_travel_is_taken) {
  const Samples samples(6, kEight, 5, 1);
  for (const char* model : {"remembers_nothing.pt", "mixed.pt", "dropout.pt", "rebinds.pt", "sometimes.pt"}) {
    EngineOnTest on_test(model, kEight, 5);
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(refusal_of(on_test, samples.slot()), "computed") << model;
      EXPECT_EQ(refusal_of_evaluation(on_test, samples.slot()), "evaluated") << model;
    }
  }
}

// Samples whose sum is positive, or negative: sometimes.pt goes by that.
Samples samples_of(bool positive, std::uint64_t seed) {
  Samples samples(4, kEight, 5, seed);
  for (float& value : samples.inputs) value = (positive ? 1.0F : -1.0F) * std::abs(value);
  return samples;
}

TEST(ScriptedModel, a_parameter_that_the_loss_does_not_depend_on_has_no_gradient) {
  EngineOnTest on_test("sometimes.pt", kEight, 5);
  const auto none = [&](const Block& block, const char* name) {
    const auto values = on_test.of(block, name);
    return std::ranges::none_of(values, has_gradient);
  };
  const Samples with = samples_of(true, 1), without = samples_of(false, 2);
  const Block used = on_test.contribution(with.slot()), unused = on_test.contribution(without.slot());
  EXPECT_TRUE(none(used, "never.weight") && none(unused, "never.weight"));
  EXPECT_TRUE(none(unused, "sometimes.weight") && none(unused, "sometimes.bias"));
  for (const char* name : {"always.weight", "always.bias", "sometimes.weight", "sometimes.bias"})
    EXPECT_TRUE(has_gradient(on_test.of(used, name)[0])) << name;
  // With one slot that uses it and one that does not, there is one.
  Block both = on_test.contribution(without.slot());
  const float* const addends[] = {both.values().data()};
  ASSERT_TRUE(on_test.engine->compute(on_test.state.values(), {with.slot(), 2}, addends, both.values()).ok());
  EXPECT_TRUE(has_gradient(on_test.of(both, "sometimes.weight")[0]) && none(both, "never.bias"));
  // A slot without samples says nothing of any.
  EXPECT_TRUE(none(on_test.contribution(Samples(0, kEight, 5, 1).slot()), "always.weight"));
}

// A slot whose backward() fails has handed over some gradients, and has others left.
TEST(ScriptedModel, a_backward_that_fails_is_an_error_and_the_next_slot_is_as_ever) {
  EngineOnTest on_test("spoils.pt", kEight, 5), other("spoils.pt", kEight, 5);
  const Samples good = samples_of(false, 1), bad = samples_of(true, 2);
  const Block expected = other.contribution(good.slot());
  Block block(on_test.engine->description().floats());
  for (int round = 0; round < 3; ++round) {
    const auto computed = on_test.engine->compute(on_test.state.values(), bad.slot(), 1, block.values());
    ASSERT_FALSE(computed.ok());
    EXPECT_NE(computed.error().message.find("modified by an inplace operation"), std::string::npos);
    EXPECT_EQ(on_test.contribution(good.slot()), expected);
  }
}

TEST(ScriptedModel, a_sparse_gradient_is_added_up_like_a_dense_one) {
  const auto contribution_of = [](const std::string& model) {
    EngineOnTest on_test(
        ModelOptions{.model = model,
                     .loss = "cross-entropy",
                     .inputs = {{.name = "ids", .dtype = DType::i64, .shape = Shape{4}, .ids = 9}},
                     .targets = {.name = "targets", .dtype = DType::i64, .shape = {}},
                     .classes = 4});
    const std::int64_t ids[] = {0, 3, 3, 8, 1, 3, 0, 0}, targets[] = {2, 1};
    const SlotSamples samples{.inputs = {{std::as_bytes(std::span(ids)), DType::i64, Shape{2, 4}}},
                              .targets = {std::as_bytes(std::span(targets)), DType::i64, Shape{2}}};
    Block sum = on_test.contribution(samples);
    const float* const addends[] = {sum.values().data()};
    EXPECT_TRUE(on_test.engine->compute(on_test.state.values(), {samples, 1}, addends, sum.values()).ok());
    return std::vector<float>(sum.values().begin(), sum.values().end());
  };
  const std::vector<float> sparse = contribution_of("sparse.pt"), dense = contribution_of("dense.pt");
  ASSERT_EQ(sparse.size(), dense.size());
  for (std::size_t i = 0; i < dense.size(); ++i) EXPECT_NEAR(sparse[i], dense[i], 1e-6F) << i;
  EXPECT_TRUE(std::ranges::any_of(dense, [](float value) { return value != 0; }));
}

// Zeros are a gradient, wherever they come from.
TEST(ScriptedModel, a_gradient_of_zeros_is_a_gradient) {
  EngineOnTest on_test("sometimes.pt", kEight, 5);
  Samples samples = samples_of(true, 1);
  for (std::size_t i = 0; i < samples.inputs.size(); i += 8) samples.inputs[i] = -0.0F;
  const Block block = on_test.contribution(samples.slot());
  for (const char* name : {"always.weight", "sometimes.weight"}) {
    EXPECT_EQ(on_test.of(block, name)[0], 0.0F) << name;
    EXPECT_TRUE(has_gradient(on_test.of(block, name)[0])) << name;
  }
}

// What the coordinator divides by a step's samples may come out a little below a whole number.
TEST(ScriptedModel, a_counter_of_batches_is_never_short) {
  EngineOnTest on_test("mixed.pt", kEight, 5);
  const Samples samples(6, kEight, 5, 1);
  const std::size_t place = static_cast<std::size_t>(
      on_test.of(on_test.state, "norm.num_batches_tracked").data() - on_test.state.values().data());
  for (const float count : {0.0F, 0.99999994F, 2.9999998F, 41.0F}) {
    on_test.state.values()[place] = count;
    const float whole = std::round(count);
    const Block block = on_test.contribution(samples.slot());
    EXPECT_EQ(on_test.of(block, "norm.num_batches_tracked")[0], 6 * (whole + 1 - count)) << count;
  }
}

TEST(ScriptedModel, the_loss_that_is_asked_for_automatically_is_what_forward_and_the_data_need) {
  const auto loss_of = [](const char* model, const Shape& shape, std::uint32_t classes,
                          const Shape& target_shape = {}, const char* loss = "auto") {
    return EngineOnTest(model, shape, classes, loss, target_shape).engine->description().loss;
  };
  EXPECT_EQ(loss_of("own_loss.pt", Shape{6}, 0, Shape{3}), "own");
  EXPECT_EQ(loss_of("own_classes.pt", Shape{6}, 4), "own");
  EXPECT_EQ(loss_of("mixed.pt", kEight, 5), "cross-entropy");
  EXPECT_EQ(loss_of("mixed.pt", kEight, 0, Shape{5}), "mse");
  EXPECT_EQ(loss_of("mlp:8,5", kEight, 5), "cross-entropy");
  EXPECT_EQ(loss_of("mlp:8,5", kEight, 0, Shape{5}), "mse");
  EXPECT_EQ(loss_of("mlp:8,5", kEight, 0, Shape{5}, "mse"), "mse");
  EXPECT_EQ(loss_of("mlp:8,5", kEight, 0, Shape{5}, "bce"), "bce");
}

}  // namespace
}  // namespace w5xde
