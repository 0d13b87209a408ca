// The engine against plain torch: the same models written once more as functions of named tensors, with
// autograd and torch::optim doing the rest. Distances are |a - b| / |b|, Euclidean, over all of a block.
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include "engine_on_test.h"
#include "learn/optimizer.h"
#include "learn/reduction.h"
#include "learn/schedule.h"
#include "tensor/safetensors.h"

namespace w5xde {
namespace {

namespace F = torch::nn::functional;
using Tensors = std::map<std::string, torch::Tensor>;
using Forward = std::function<torch::Tensor(Tensors&, torch::Tensor)>;

torch::Tensor linear(Tensors& t, const std::string& name, const torch::Tensor& x) {
  return torch::linear(x, t.at(name + ".weight"), t.at(name + ".bias"));
}

torch::Tensor batch_norm(Tensors& t, const std::string& name, const torch::Tensor& x) {
  t.at(name + ".num_batches_tracked") += 1;
  return torch::batch_norm(x, t.at(name + ".weight"), t.at(name + ".bias"), t.at(name + ".running_mean"),
                           t.at(name + ".running_var"), true, 0.1, 1e-5, false);
}

torch::Tensor mlp(Tensors& t, torch::Tensor x) {
  x = x.flatten(1);
  for (int i = 0; t.contains(std::to_string(i) + ".weight"); i += 2) {
    if (i > 0) x = torch::relu(x);
    x = linear(t, std::to_string(i), x);
  }
  return x;
}

torch::Tensor lenet(Tensors& t, torch::Tensor x) {
  if (x.dim() == 3) x = x.unsqueeze(1);
  x = torch::max_pool2d(torch::relu(torch::conv2d(x, t.at("conv1.weight"), t.at("conv1.bias"), 1, 2)), 2);
  x = torch::max_pool2d(torch::relu(torch::conv2d(x, t.at("conv2.weight"), t.at("conv2.bias"))), 2);
  x = torch::relu(linear(t, "fc2", torch::relu(linear(t, "fc1", x.flatten(1)))));
  return linear(t, "fc3", x);
}

torch::Tensor resnet_small(Tensors& t, torch::Tensor x) {
  if (x.dim() == 3) x = x.unsqueeze(1);
  x = torch::relu(batch_norm(t, "bn", torch::conv2d(x, t.at("conv.weight"), {}, 1, 1)));
  for (int i = 1; i <= 6; ++i) {
    const std::string block = "block" + std::to_string(i) + ".";
    const bool narrows = t.contains(block + "shortcut.weight");
    torch::Tensor y = torch::conv2d(x, t.at(block + "conv1.weight"), {}, narrows ? 2 : 1, 1);
    y = torch::conv2d(torch::relu(batch_norm(t, block + "bn1", y)), t.at(block + "conv2.weight"), {}, 1, 1);
    y = batch_norm(t, block + "bn2", y);
    if (narrows)
      x = batch_norm(t, block + "shortcut_bn", torch::conv2d(x, t.at(block + "shortcut.weight"), {}, 2));
    x = torch::relu(x + y);
  }
  return linear(t, "fc", x.mean({2, 3}));
}

// Leaves with the values of a state, by name.
Tensors tensors_of(const EngineOnTest& on_test) {
  Tensors tensors;
  const ModelDescription& description = on_test.engine->description();
  for (const auto& layout : {description.parameters, description.buffers}) {
    for (const auto& entry : layout->entries()) {
      const auto values = on_test.of(on_test.state, entry.name);
      const std::vector<std::int64_t> dims(entry.shape.dims().begin(), entry.shape.dims().end());
      auto tensor = torch::from_blob(const_cast<float*>(values.data()), dims).clone();
      tensors[entry.name] = tensor.requires_grad_(layout == description.parameters);
    }
  }
  return tensors;
}

torch::Tensor inputs_of(const Samples& samples) {
  const std::vector<std::int64_t> dims(samples.shape.dims().begin(), samples.shape.dims().end());
  return torch::from_blob(const_cast<float*>(samples.inputs.data()), dims).clone();
}

torch::Tensor targets_of(const Samples& samples) {
  auto* targets = const_cast<std::int64_t*>(samples.targets.data());
  return torch::from_blob(targets, {samples.shape[0]}, torch::kLong).clone();
}

// Distance between what lies in `block` under each name and `expected`.
double distance(const EngineOnTest& on_test, const Block& block, const Tensors& expected) {
  double difference = 0;
  double norm = 0;
  for (const auto& [name, tensor] : expected) {
    const auto values = on_test.of(block, name);
    const torch::Tensor flat = tensor.detach().contiguous().view(-1);
    EXPECT_EQ(static_cast<std::size_t>(flat.numel()), values.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = flat.data_ptr<float>()[i];
      difference += (values[i] - value) * (values[i] - value);
      norm += value * value;
    }
  }
  return std::sqrt(difference / norm);
}

// What a slot's contribution has to be, from tensors after backward().
Tensors gradients_of(const Tensors& tensors) {
  Tensors gradients;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.requires_grad()) gradients[name] = tensor.grad();
  }
  return gradients;
}

TEST(TorchReference, contributions_of_built_in_models_are_autograd_s) {
  struct Case {
    const char* model;
    Shape shape;
    Forward forward;
  };
  const Case cases[] = {{"mlp:10,20,10", Shape{10}, mlp},
                        {"mlp:12,9,7,10", Shape{3, 4}, mlp},
                        {"lenet", Shape{28, 28}, lenet},
                        {"lenet", Shape{3, 20, 16}, lenet},
                        {"resnet-small", Shape{12, 10}, resnet_small},
                        {"resnet-small", Shape{3, 8, 8}, resnet_small}};
  for (const Case& test : cases) {
    SCOPED_TRACE(test.model);
    EngineOnTest on_test(test.model, test.shape, 10);
    const Samples samples(7, test.shape, 10, 1);
    Tensors tensors = tensors_of(on_test);
    const torch::Tensor loss =
        F::cross_entropy(test.forward(tensors, inputs_of(samples)), targets_of(samples),
                         F::CrossEntropyFuncOptions().reduction(torch::kSum));
    loss.backward();
    Sums sums;
    const Block block = on_test.contribution(samples.slot(), 1, &sums);
    EXPECT_NEAR(sums.loss, loss.item<double>(), 1e-6 * sums.loss);
    EXPECT_LE(distance(on_test, block, gradients_of(tensors)), 1e-6);
    Tensors changes;
    const Tensors before = tensors_of(on_test);
    for (const auto& entry : on_test.engine->description().buffers->entries()) {
      changes[entry.name] = 7 * (tensors.at(entry.name) - before.at(entry.name));
    }
    if (!changes.empty()) {
      EXPECT_LE(distance(on_test, block, changes), 1e-6);
    }
  }
}

TEST(TorchReference, contributions_of_scripted_models_are_autograd_s) {
  EngineOnTest on_test("mixed.pt", Shape{8}, 5);
  const Samples samples(7, Shape{8}, 5, 1);
  auto module = torch::jit::load(model_file("mixed.pt").string());
  const torch::Tensor outputs = module.forward({inputs_of(samples)}).toTensor();
  F::cross_entropy(outputs, targets_of(samples), F::CrossEntropyFuncOptions().reduction(torch::kSum))
      .backward();
  Tensors gradients;
  for (const auto& entry : on_test.engine->description().parameters->entries()) {
    for (const auto& [name, tensor] : module.named_parameters()) {
      if (name == entry.name) gradients[name] = tensor.grad();
    }
  }
  EXPECT_EQ(gradients.size(), 8u);
  EXPECT_LE(distance(on_test, on_test.contribution(samples.slot()), gradients), 1e-6);
}

TEST(TorchReference, mean_squared_error_is_summed_over_samples) {
  EngineOnTest on_test("mlp:8,9,6", Shape{8}, 0, "mse", Shape{2, 3});
  const Samples samples(7, Shape{8}, 5, 1);
  const Samples wanted(7, Shape{2, 3}, 5, 2);
  const SlotSamples slot{.inputs = samples.slot().inputs, .targets = wanted.slot().inputs[0]};
  Tensors tensors = tensors_of(on_test);
  const torch::Tensor loss = 7 * F::mse_loss(mlp(tensors, inputs_of(samples)), inputs_of(wanted).flatten(1));
  loss.backward();
  Sums sums;
  const Block block = on_test.contribution(slot, 1, &sums);
  EXPECT_NEAR(sums.loss, loss.item<double>(), 1e-6 * sums.loss);
  EXPECT_LE(distance(on_test, block, gradients_of(tensors)), 1e-6);
  const auto evaluation = on_test.engine->evaluate(on_test.state.values(), slot);
  EXPECT_NEAR(evaluation->loss_sum, sums.loss, 1e-6 * sums.loss);
}

TEST(TorchReference, a_model_s_own_loss_is_its_mean_times_the_samples) {
  EngineOnTest floats("own_loss.pt", Shape{6}, 0, "own", Shape{3});
  const Samples samples(7, Shape{6}, 4, 1);
  const Samples wanted(7, Shape{3}, 4, 2);
  Tensors tensors = tensors_of(floats);
  (linear(tensors, "layer", inputs_of(samples)) - inputs_of(wanted)).abs().sum().backward();
  const Block block =
      floats.contribution({.inputs = samples.slot().inputs, .targets = wanted.slot().inputs[0]});
  EXPECT_LE(distance(floats, block, gradients_of(tensors)), 1e-6);

  EngineOnTest classes("own_classes.pt", Shape{6}, 4, "own");
  tensors = tensors_of(classes);
  (7 * F::cross_entropy(linear(tensors, "layer", inputs_of(samples)), targets_of(samples))).backward();
  EXPECT_LE(distance(classes, classes.contribution(samples.slot()), gradients_of(tensors)), 1e-6);
}

TEST(TorchReference, initial_values_are_those_of_torch_nn_from_the_same_seed) {
  EngineOnTest on_test("mlp:10,20,10", Shape{10}, 10);
  torch::manual_seed(42);
  torch::nn::Sequential sequential;
  sequential->push_back(torch::nn::Linear(10, 20));
  sequential->push_back(torch::nn::ReLU());
  sequential->push_back(torch::nn::Linear(20, 10));
  Tensors expected;
  for (const auto& item : sequential->named_parameters()) expected[item.key()] = item.value();
  EXPECT_EQ(distance(on_test, on_test.state, expected), 0);
}

// One step of the pool: slots summed along the tree, then the optimizer; buffers get their mean change.
void step(EngineOnTest& on_test, Optimizer& optimizer, const std::vector<SlotSamples>& slots, double rate) {
  const ModelDescription& description = on_test.engine->description();
  Reduction reduction(static_cast<std::uint32_t>(slots.size()), description.floats());
  std::vector<Reduction::Buffer> spare;
  for (std::uint32_t slot = 0; slot < slots.size(); ++slot) {
    Sums sums;
    Block block = on_test.contribution(slots[slot], slot, &sums);
    ASSERT_TRUE(reduction.add({slot, 1}, block.release(), sums, nullptr, spare).ok());
  }
  Sums sums;
  const auto buffer = reduction.take(sums);
  const std::span<const float> total(reinterpret_cast<const float*>(buffer->data()), description.floats());
  const std::uint64_t parameters = description.parameters->floats();
  const float scale = 1.0F / static_cast<float>(sums.samples);
  optimizer.step(on_test.state.values().first(parameters), total.first(parameters), scale, rate, nullptr);
  const double mean = 1.0 / static_cast<double>(sums.samples);
  for (std::uint64_t i = parameters; i < total.size(); ++i)
    on_test.state.values()[i] += static_cast<float>(static_cast<double>(total[i]) * mean);
}

struct Course {
  std::string name;
  OptimizerOptions options;
  std::string schedule;
  std::function<double(int)> factor;  // as PyTorch's documentation has it
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)> make;
};

std::vector<Course> courses() {
  using torch::optim::SGDOptions;
  using Kind = OptimizerOptions::Kind;
  const auto constant = [](int) { return 1.0; };
  const auto halves = [](int step) { return std::pow(0.5, step / 20); };
  const auto cosine = [](int step) { return (1 + std::cos(std::numbers::pi * step / 50)) / 2; };
  const auto warm_up = [](int step) { return step < 10 ? 1.0 / 3 + (1 - 1.0 / 3) * step / 10 : 1.0; };
  const auto sgd = [](SGDOptions options) {
    return [options](std::vector<torch::Tensor> parameters) -> std::unique_ptr<torch::optim::Optimizer> {
      return std::make_unique<torch::optim::SGD>(std::move(parameters), options);
    };
  };
  return {
      {"sgd", {.kind = Kind::sgd, .learning_rate = 0.1}, "constant", constant, sgd(SGDOptions(0.1))},
      {"momentum",
       {.kind = Kind::sgd, .learning_rate = 0.1, .momentum = 0.9},
       "step:20,0.5",
       halves,
       sgd(SGDOptions(0.1).momentum(0.9))},
      {"nesterov",
       {.kind = Kind::sgd, .learning_rate = 0.1, .momentum = 0.9, .nesterov = true},
       "cosine",
       cosine,
       sgd(SGDOptions(0.1).momentum(0.9).nesterov(true))},
      {"weight decay",
       {.kind = Kind::sgd, .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01},
       "constant+warmup:10",
       warm_up,
       sgd(SGDOptions(0.1).momentum(0.9).weight_decay(0.01))},
      {"adam",
       {.kind = Kind::adam, .learning_rate = 0.001, .weight_decay = 0.01},
       "cosine",
       cosine,
       [](std::vector<torch::Tensor> parameters) -> std::unique_ptr<torch::optim::Optimizer> {
         return std::make_unique<torch::optim::Adam>(std::move(parameters),
                                                     torch::optim::AdamOptions(0.001).weight_decay(0.01));
       }},
      {"adamw",
       {.kind = Kind::adamw, .learning_rate = 0.001, .weight_decay = 0.02},
       "step:20,0.5",
       halves,
       [](std::vector<torch::Tensor> parameters) -> std::unique_ptr<torch::optim::Optimizer> {
         return std::make_unique<torch::optim::AdamW>(std::move(parameters),
                                                      torch::optim::AdamWOptions(0.001).weight_decay(0.02));
       }},
  };
}

// The distance of the pool from plain torch after 50 steps of slots of 8, 8, 8, 8 and 5 samples.
double learn_both_ways(const Course& course, const char* model, const Shape& shape, const Forward& forward) {
  EngineOnTest on_test(model, shape, 10);
  Optimizer optimizer(course.options, on_test.engine->description().parameters);
  const Schedule schedule = parse_schedule(course.schedule, 50).value();
  Tensors tensors = tensors_of(on_test);
  std::vector<torch::Tensor> leaves;
  for (const auto& [name, tensor] : tensors) leaves.push_back(tensor);
  const auto reference = course.make(leaves);
  for (int number = 0; number < 50; ++number) {
    std::vector<Samples> slots;
    std::vector<SlotSamples> views;
    std::vector<torch::Tensor> inputs, targets;
    for (int slot = 0; slot < 5; ++slot) {
      slots.emplace_back(slot == 4 ? 5 : 8, shape, 10, static_cast<std::uint64_t>(number * 5 + slot));
      inputs.push_back(inputs_of(slots.back()));
      targets.push_back(targets_of(slots.back()));
    }
    for (const Samples& samples : slots) views.push_back(samples.slot());
    step(on_test, optimizer, views,
         course.options.learning_rate * schedule.factor(static_cast<std::uint64_t>(number)));
    for (auto& group : reference->param_groups()) {
      group.options().set_lr(course.options.learning_rate * course.factor(number));
    }
    reference->zero_grad();
    F::cross_entropy(forward(tensors, torch::cat(inputs)), torch::cat(targets)).backward();
    reference->step();
  }
  return distance(on_test, on_test.state, tensors);
}

TEST(TorchReference, fifty_steps_of_the_pool_are_fifty_steps_of_torch_optim) {
  for (const Course& course : courses()) {
    SCOPED_TRACE(course.name);
    EXPECT_LE(learn_both_ways(course, "mlp:12,24,10", Shape{12}, mlp), 1e-6);
  }
  EXPECT_LE(learn_both_ways(courses()[1], "lenet", Shape{12, 12}, lenet), 1e-6);
}

torch::Tensor sometimes(Tensors& t, const torch::Tensor& x) {
  const torch::Tensor y = linear(t, "always", x) + linear(t, "never", x).detach();
  return x.sum().item<float>() > 0 ? y + linear(t, "sometimes", x) : y;
}

// As PyTorch adds gradients up: one backward for each slot, then a step. In a third of the steps no slot uses
// the parameter, in a third some do.
TEST(TorchReference, a_parameter_without_a_gradient_is_left_alone_as_torch_optim_leaves_it) {
  for (const Course& course : courses()) {
    SCOPED_TRACE(course.name);
    EngineOnTest on_test("sometimes.pt", Shape{8}, 5);
    Optimizer optimizer(course.options, on_test.engine->description().parameters);
    Tensors tensors = tensors_of(on_test);
    std::vector<torch::Tensor> leaves;
    for (const auto& [name, tensor] : tensors) leaves.push_back(tensor);
    const auto reference = course.make(leaves);
    for (int number = 0; number < 30; ++number) {
      std::vector<Samples> slots;
      std::vector<SlotSamples> views;
      for (int slot = 0; slot < 3; ++slot) {
        Samples& samples = slots.emplace_back(6, Shape{8}, 5, static_cast<std::uint64_t>(number * 3 + slot));
        const bool uses_it = number % 3 == 1 || (number % 3 == 2 && slot == 1);
        for (float& value : samples.inputs) value = (uses_it ? 1.0F : -1.0F) * std::abs(value);
      }
      for (const Samples& samples : slots) views.push_back(samples.slot());
      step(on_test, optimizer, views, course.options.learning_rate);
      for (torch::Tensor& leaf : leaves) leaf.mutable_grad() = torch::Tensor();
      for (const Samples& samples : slots)
        (F::cross_entropy(sometimes(tensors, inputs_of(samples)), targets_of(samples)) / 3).backward();
      EXPECT_EQ(tensors.at("sometimes.weight").grad().defined(), number % 3 != 0);
      EXPECT_FALSE(tensors.at("never.bias").grad().defined());
      reference->step();
    }
    EXPECT_LE(distance(on_test, on_test.state, tensors), 2e-6);
  }
}

// trained.safetensors holds what torch.optim in Python made of mixed.pt, one slot a step, so that BatchNorm
// sees the same batches.
TEST(TorchReference, a_model_scripted_in_python_learns_what_it_learns_there) {
  const SafetensorsFile file = SafetensorsFile::open(model_file("trained.safetensors")).value();
  const TensorView& inputs = *file.contents().find("inputs");
  const TensorView& targets = *file.contents().find("targets");
  const std::pair<std::string, OptimizerOptions> runs[] = {
      {"sgd",
       {.kind = OptimizerOptions::Kind::sgd,
        .learning_rate = 0.05,
        .momentum = 0.9,
        .nesterov = true,
        .weight_decay = 0.01}},
      {"adamw", {.kind = OptimizerOptions::Kind::adamw, .learning_rate = 0.003, .weight_decay = 0.02}}};
  for (const auto& [name, options] : runs) {
    SCOPED_TRACE(name);
    EngineOnTest on_test("mixed.pt", Shape{8}, 5);
    Optimizer optimizer(options, on_test.engine->description().parameters);
    const auto steps = static_cast<std::size_t>(inputs.shape()[0]);
    const std::int64_t batch = inputs.shape()[1];
    for (std::size_t i = 0; i < steps; ++i) {
      const std::size_t input_bytes = inputs.byte_count() / steps;
      const std::size_t target_bytes = targets.byte_count() / steps;
      step(on_test, optimizer,
           {{.inputs = {{inputs.bytes().subspan(i * input_bytes, input_bytes), DType::f32, Shape{batch, 8}}},
             .targets = {targets.bytes().subspan(i * target_bytes, target_bytes), DType::i64, Shape{batch}}}},
           options.learning_rate);
    }
    Tensors expected;
    for (const auto& layout :
         {on_test.engine->description().parameters, on_test.engine->description().buffers}) {
      for (const auto& entry : layout->entries()) {
        const TensorView* view = file.contents().find(name + "/" + entry.name);
        if (view == nullptr) continue;  // the counter, which is no float there
        auto* values = reinterpret_cast<float*>(const_cast<std::byte*>(view->bytes().data()));
        expected[entry.name] =
            torch::from_blob(values, {static_cast<std::int64_t>(view->shape().elements())}).clone();
      }
    }
    EXPECT_EQ(expected.size(), 10u);
    EXPECT_LE(distance(on_test, on_test.state, expected), 1e-5);
    EXPECT_EQ(on_test.of(on_test.state, "norm.num_batches_tracked")[0], 50.0F);
  }
}

}  // namespace
}  // namespace w5xde
