#include "learn/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "w5xde/no_gradient.h"

namespace w5xde {
namespace {

using Kind = OptimizerOptions::Kind;

std::shared_ptr<const BlockLayout> layout_of(std::int64_t floats) {
  return BlockLayout::make({{"w", Shape{floats}}}, 1 << 24).value();
}

// torch.optim's formulas in double, one parameter: what the fused loops have to agree with.
class Reference {
 public:
  explicit Reference(const OptimizerOptions& options) : options_(options) {}

  void step(double& parameter, double gradient, double rate) {
    ++steps_;
    if (options_.kind == Kind::sgd) {
      double g = gradient + options_.weight_decay * parameter;
      if (options_.momentum != 0) {
        first_ = steps_ == 1 ? g : options_.momentum * first_ + g;
        g = options_.nesterov ? g + options_.momentum * first_ : first_;
      }
      parameter -= rate * g;
      return;
    }
    if (options_.kind == Kind::adamw) {
      parameter -= rate * options_.weight_decay * parameter;
    } else {
      gradient += options_.weight_decay * parameter;
    }
    first_ = options_.beta1 * first_ + (1 - options_.beta1) * gradient;
    second_ = options_.beta2 * second_ + (1 - options_.beta2) * gradient * gradient;
    const double correction1 = 1 - std::pow(options_.beta1, steps_),
                 correction2 = 1 - std::pow(options_.beta2, steps_);
    parameter -=
        rate / correction1 * first_ / (std::sqrt(second_) / std::sqrt(correction2) + options_.epsilon);
  }

 private:
  OptimizerOptions options_;
  int steps_ = 0;
  double first_ = 0, second_ = 0;
};

std::vector<OptimizerOptions> all_options() {
  return {
      {.kind = Kind::sgd, .learning_rate = 0.1},
      {.kind = Kind::sgd, .learning_rate = 0.1, .weight_decay = 0.01},
      {.kind = Kind::sgd, .learning_rate = 0.05, .momentum = 0.9},
      {.kind = Kind::sgd, .learning_rate = 0.05, .momentum = 0.9, .nesterov = true, .weight_decay = 0.001},
      {.kind = Kind::adam, .learning_rate = 0.001},
      {.kind = Kind::adam, .learning_rate = 0.001, .weight_decay = 0.01},
      {.kind = Kind::adamw, .learning_rate = 0.001, .weight_decay = 0.01}};
}

TEST(OptimizerTest, fifty_steps_agree_with_the_formulas_of_torch_optim) {
  for (const OptimizerOptions& options : all_options()) {
    Random random(9);
    Optimizer optimizer(options, layout_of(16));
    Reference reference(options);
    std::vector<float> parameters(16, 0.7f), gradient(16);
    double expected = 0.7f;
    for (int step = 0; step < 50; ++step) {
      const float drawn = static_cast<float>(random.unit() - 0.4);
      std::fill(gradient.begin(), gradient.end(), drawn);
      const double rate = options.learning_rate * (1 - step / 100.0);
      optimizer.step(parameters, gradient, 0.25f, rate, nullptr);
      reference.step(expected, static_cast<double>(drawn) * 0.25, rate);
    }
    EXPECT_NEAR(parameters[0], expected, 1e-6 * std::abs(expected) + 1e-7) << name_of(options.kind);
    EXPECT_EQ(optimizer.steps(), 50u);
  }
}

TEST(OptimizerTest, threads_change_no_bit) {
  constexpr std::int64_t kFloats = 1'000'000;
  ThreadPool pool(2);
  for (const OptimizerOptions& options : all_options()) {
    Random random(4);
    std::vector<float> alone(kFloats), together(kFloats), gradient(kFloats);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      alone[i] = together[i] = static_cast<float>(random.unit());
      gradient[i] = static_cast<float>(random.unit() - 0.5);
    }
    Optimizer one(options, layout_of(kFloats)), many(options, layout_of(kFloats));
    for (int step = 0; step < 3; ++step) {
      one.step(alone, gradient, 0.5f, 0.01, nullptr);
      many.step(together, gradient, 0.5f, 0.01, &pool);
    }
    EXPECT_EQ(std::memcmp(alone.data(), together.data(), alone.size() * sizeof(float)), 0)
        << name_of(options.kind);
    EXPECT_EQ(norm_of(alone, 2.0, nullptr), norm_of(together, 2.0, &pool));
  }
}

// One float in the last of several tasks: what comes before it is stepped by then.
TEST(OptimizerTest, a_gradient_that_is_not_finite_changes_nothing_but_what_is_stepped_into) {
  constexpr std::int64_t kFloats = 500'000;
  ThreadPool pool(2);
  for (const OptimizerOptions& options : all_options()) {
    Random random(5);
    std::vector<float> before(kFloats), after(kFloats), expected(kFloats), gradient(kFloats);
    for (std::size_t i = 0; i < before.size(); ++i) {
      before[i] = static_cast<float>(random.unit());
      gradient[i] = static_cast<float>(random.unit() - 0.5);
    }
    const std::vector<float> kept = before;
    Optimizer tried(options, layout_of(kFloats)), plain(options, layout_of(kFloats));
    const auto step = [&](Optimizer& optimizer, std::vector<float>& to) {
      optimizer.begin_step();
      return optimizer.step_part(0, {before, to}, gradient, 0.5f, 0.01, &pool);
    };
    ASSERT_TRUE(step(plain, expected));
    std::vector<float> good = gradient;
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      gradient[kFloats - 3] = bad;
      EXPECT_FALSE(step(tried, after)) << name_of(options.kind);
      tried.cancel_step();
      EXPECT_EQ(before, kept);
    }
    gradient = good;
    ASSERT_TRUE(step(tried, after));
    EXPECT_EQ(after, expected) << name_of(options.kind);
    EXPECT_EQ(tried.steps(), 1u);
    for (std::size_t i = 0; i < tried.states().size(); ++i)
      EXPECT_TRUE(std::ranges::equal(tried.states()[i].block.values(), plain.states()[i].block.values()));
  }
}

TEST(OptimizerTest, a_step_from_saved_state_is_the_step_that_would_have_been) {
  for (const OptimizerOptions& options : all_options()) {
    const std::vector<float> gradient(16, 0.3f);
    std::vector<float> straight(16, 1.0f);
    Optimizer optimizer(options, layout_of(16));
    for (int step = 0; step < 5; ++step) optimizer.step(straight, gradient, 1.0f, 0.01, nullptr);

    std::vector<float> resumed = straight;
    Optimizer restored(options, layout_of(16));
    restored.set_steps(optimizer.steps());
    for (std::size_t i = 0; i < restored.states().size(); ++i) {
      std::ranges::copy(optimizer.states()[i].block.values(), restored.states()[i].block.values().begin());
    }
    optimizer.step(straight, gradient, 1.0f, 0.01, nullptr);
    restored.step(resumed, gradient, 1.0f, 0.01, nullptr);
    EXPECT_EQ(straight, resumed) << name_of(options.kind);
  }
}

// Three parameters; which of them have a gradient differs from step to step.
class WithoutGradient {
 public:
  explicit WithoutGradient(const OptimizerOptions& options)
      : optimizer(options, layout()), parameters(layout()->floats(), 0.7F) {}

  static const std::shared_ptr<const BlockLayout>& layout() {
    static const auto made =
        BlockLayout::make({{"a", Shape{40}}, {"b", Shape{24}}, {"c", Shape{5}}}, 1000).value();
    return made;
  }
  static std::vector<float> gradient(float value, const std::vector<bool>& has) {
    std::vector<float> gradient(layout()->floats());
    for (std::size_t i = 0; i < has.size(); ++i) {
      const auto& entry = layout()->entries()[i];
      std::fill_n(gradient.begin() + static_cast<std::ptrdiff_t>(entry.offset), entry.shape.elements(),
                  has[i] ? value : kNoGradient);
    }
    return gradient;
  }
  float& first_of(std::size_t i) { return parameters[layout()->entries()[i].offset]; }

  Optimizer optimizer;
  std::vector<float> parameters;
};

constexpr float kGradients[] = {0.5F, -0.25F, 0.0F, 0.125F, 1.0F, 0.75F};
const std::vector<bool> kHas[] = {{true, false, false}, {true, true, false},  {true, true, false},
                                  {true, false, false}, {false, true, false}, {true, true, false}};

TEST(OptimizerTest, a_parameter_without_a_gradient_is_left_alone_with_its_state_and_its_steps) {
  for (const OptimizerOptions& options : all_options()) {
    WithoutGradient on_test(options);
    Reference references[] = {Reference(options), Reference(options)};
    double expected[] = {0.7F, 0.7F};
    for (std::size_t step = 0; step < std::size(kHas); ++step) {
      on_test.optimizer.step(on_test.parameters, WithoutGradient::gradient(kGradients[step], kHas[step]),
                             1.0F, 0.01, nullptr);
      for (std::size_t i = 0; i < 2; ++i) {
        if (kHas[step][i]) references[i].step(expected[i], double{kGradients[step]}, 0.01);
      }
    }
    for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(on_test.first_of(i), expected[i], 1e-6) << i;
    EXPECT_EQ(on_test.first_of(2), 0.7F) << name_of(options.kind);
    const auto without = on_test.optimizer.steps_without_gradient();
    EXPECT_EQ(std::vector(without.begin(), without.end()), (std::vector<std::uint64_t>{1, 2, 6}));
  }
}

// Parts end anywhere, inside a parameter too, and only one of them has its first float.
TEST(OptimizerTest, parts_and_saved_state_agree_on_which_parameters_are_left_alone) {
  for (const OptimizerOptions& options : all_options()) {
    WithoutGradient whole(options), parts(options);
    for (std::size_t step = 0; step < std::size(kHas); ++step) {
      const auto gradient = WithoutGradient::gradient(kGradients[step], kHas[step]);
      whole.optimizer.step(whole.parameters, gradient, 1.0F, 0.01, nullptr);
      WithoutGradient resumed(options);
      resumed.parameters = parts.parameters;
      resumed.optimizer.set_steps(parts.optimizer.steps(), parts.optimizer.steps_without_gradient());
      for (std::size_t i = 0; i < resumed.optimizer.states().size(); ++i) {
        std::ranges::copy(parts.optimizer.states()[i].block.values(),
                          resumed.optimizer.states()[i].block.values().begin());
      }
      resumed.optimizer.begin_step();
      std::size_t begin = 0;
      for (const std::size_t end : {std::size_t{7}, std::size_t{48}, std::size_t{50}, gradient.size()}) {
        const std::span<float> parameters = std::span(resumed.parameters).subspan(begin, end - begin);
        resumed.optimizer.step_part(begin, {parameters, parameters},
                                    std::span(gradient).subspan(begin, end - begin), 1.0F, 0.01, nullptr);
        begin = end;
      }
      std::swap(parts.optimizer, resumed.optimizer);
      std::swap(parts.parameters, resumed.parameters);
    }
    EXPECT_EQ(whole.parameters, parts.parameters) << name_of(options.kind);
  }
}

TEST(OptimizerTest, padding_stays_zero) {
  for (const OptimizerOptions& options : all_options()) {
    Optimizer optimizer(options, layout_of(16));
    std::vector<float> parameters(16, 0.0f);
    const std::vector<float> gradient(16, 0.0f);
    for (int step = 0; step < 3; ++step) optimizer.step(parameters, gradient, 1.0f, 0.1, nullptr);
    EXPECT_EQ(parameters, std::vector<float>(16, 0.0f));
  }
}

TEST(OptimizerTest, the_norm_is_that_of_the_scaled_gradient) {
  EXPECT_DOUBLE_EQ(norm_of(std::vector<float>{3.0f, 4.0f}, 0.5, nullptr), 2.5);
  EXPECT_EQ(norm_of({}, 1.0, nullptr), 0.0);
}

TEST(OptimizerTest, options_that_make_no_sense_are_refused) {
  for (const OptimizerOptions& options : all_options()) EXPECT_TRUE(options.check().ok());
  EXPECT_FALSE((OptimizerOptions{.learning_rate = -1}).check().ok());
  EXPECT_FALSE((OptimizerOptions{.learning_rate = std::nan("")}).check().ok());
  EXPECT_FALSE((OptimizerOptions{.momentum = 1}).check().ok());
  EXPECT_FALSE((OptimizerOptions{.nesterov = true}).check().ok());
  EXPECT_FALSE((OptimizerOptions{.weight_decay = -0.1}).check().ok());
  EXPECT_FALSE((OptimizerOptions{.beta1 = 1}).check().ok());
  EXPECT_FALSE((OptimizerOptions{.epsilon = 0}).check().ok());
  EXPECT_EQ(parse_optimizer("adamw").value(), Kind::adamw);
  EXPECT_NE(parse_optimizer("adagrad").error().message.find("sgd, adam or adamw"), std::string::npos);
}

}  // namespace
}  // namespace w5xde
