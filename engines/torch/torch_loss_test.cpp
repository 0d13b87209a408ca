// Losses and inputs of every kind against plain torch, which is given the same TorchScript files.
#include <gtest/gtest.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "engine_on_test.h"
#include "learn/optimizer.h"

namespace w5xde {
namespace {

namespace F = torch::nn::functional;

DType dtype_of(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kLong:
      return DType::i64;
    case torch::kInt:
      return DType::i32;
    case torch::kShort:
      return DType::i16;
    case torch::kChar:
      return DType::i8;
    case torch::kByte:
      return DType::u8;
    case torch::kBool:
      return DType::boolean;
    case torch::kDouble:
      return DType::f64;
    case torch::kHalf:
      return DType::f16;
    case torch::kBFloat16:
      return DType::bf16;
    default:
      return DType::f32;
  }
}

// Looks at the tensor's memory.
SampleTensor samples_of(const torch::Tensor& tensor) {
  EXPECT_TRUE(tensor.is_contiguous());
  return {{static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes()},
          dtype_of(tensor),
          Shape::make({tensor.sizes().data(), tensor.sizes().size()}).value()};
}

SampleField field_of(const std::string& name, const torch::Tensor& tensor, std::uint64_t ids = 0) {
  return {.name = name,
          .dtype = dtype_of(tensor),
          .shape = Shape::make({tensor.sizes().data() + 1, tensor.sizes().size() - 1}).value(),
          .ids = ids};
}

// The model of a file twice: in the engine, and as torch has it.
struct Both {
  Both(const std::string& file, const std::string& loss, std::uint32_t classes,
       std::vector<SampleField> inputs, const SampleField& targets, std::optional<std::int64_t> ignored = {})
      : engine(ModelOptions{.model = file,
                            .loss = loss,
                            .inputs = std::move(inputs),
                            .targets = targets,
                            .classes = classes,
                            .ignore_index = ignored}),
        module(torch::jit::load(model_file(file).string())) {}

  torch::Tensor forward(std::vector<torch::jit::IValue> inputs) {
    return module.forward(std::move(inputs)).toTensor();
  }
  // |contribution - torch's gradients| / |torch's gradients|; forgets the gradients.
  double distance(const Block& block) {
    double difference = 0, norm = 0;
    for (const auto& [name, tensor] : module.named_parameters()) {
      const auto values = engine.of(block, name);
      const torch::Tensor gradient = tensor.grad().contiguous();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = gradient.data_ptr<float>()[i];
        difference += (values[i] - expected) * (values[i] - expected);
        norm += expected * expected;
      }
      tensor.mutable_grad().reset();
    }
    return std::sqrt(difference / norm);
  }
  std::string refusal(const SlotSamples& samples) {
    Block block(engine.engine->description().floats());
    const auto computed = engine.engine->compute(engine.state.values(), samples, 1, block.values());
    return computed.ok() ? "computed" : computed.error().message;
  }

  EngineOnTest engine;
  torch::jit::Module module;
};

constexpr std::int64_t kVocabulary = 11;

struct Sequences {
  Sequences(std::int64_t count, std::int64_t length, std::uint64_t seed) {
    torch::manual_seed(seed);
    ids = torch::randint(kVocabulary, {count, length}, torch::kLong);
    targets = torch::randint(kVocabulary, {count, length}, torch::kLong);
  }
  SlotSamples slot() const { return {.inputs = {samples_of(ids)}, .targets = samples_of(targets)}; }

  torch::Tensor ids, targets;
};

Both language(const std::string& file, const Sequences& of, std::optional<std::int64_t> ignored = {}) {
  return {file,
          "cross-entropy",
          kVocabulary,
          {field_of("inputs", of.ids, kVocabulary)},
          field_of("targets", of.targets),
          ignored};
}

torch::Tensor mean_loss(const torch::Tensor& outputs, const torch::Tensor& targets,
                        std::int64_t ignored = -100) {
  return F::cross_entropy(outputs, targets, F::CrossEntropyFuncOptions().ignore_index(ignored));
}

TEST(TorchLoss, a_sequence_costs_the_mean_over_its_targets_wherever_its_classes_are) {
  const Sequences data(4, 7, 1);
  for (const char* file : {"language.pt", "language_second.pt"}) {
    SCOPED_TRACE(file);
    Both both = language(file, data);
    torch::Tensor outputs = both.forward({data.ids});
    if (std::string(file) == "language.pt") outputs = outputs.transpose(1, 2);
    const torch::Tensor loss = 4 * mean_loss(outputs, data.targets);
    loss.backward();
    Sums sums;
    const Block block = both.engine.contribution(data.slot(), 1, &sums);
    EXPECT_EQ(sums.samples, 4u);
    EXPECT_NEAR(sums.loss, loss.item<double>(), 1e-6 * sums.loss);
    EXPECT_LE(both.distance(block), 1e-6);
    const auto evaluation = both.engine.engine->evaluate(both.engine.state.values(), data.slot()).value();
    EXPECT_NEAR(evaluation.loss_sum, sums.loss, 1e-6 * sums.loss);
    EXPECT_EQ(evaluation.samples, 4u);
    EXPECT_EQ(evaluation.counted, 28u);
    EXPECT_EQ(static_cast<std::int64_t>(evaluation.correct),
              outputs.argmax(1).eq(data.targets).sum().item<std::int64_t>());
  }
}

// The data's largest id says how many classes it has; a model's vocabulary may be larger.
TEST(TorchLoss, a_model_may_have_more_classes_than_the_data) {
  Sequences data(3, 4, 8);
  data.targets.remainder_(5);
  for (const char* file : {"language.pt", "language_second.pt"}) {
    Both both(file, "cross-entropy", 5, {field_of("inputs", data.ids, kVocabulary)},
              field_of("targets", data.targets));
    torch::Tensor outputs = both.forward({data.ids});
    if (std::string(file) == "language.pt") outputs = outputs.transpose(1, 2);
    (3 * mean_loss(outputs, data.targets)).backward();
    EXPECT_LE(both.distance(both.engine.contribution(data.slot())), 1e-6);
  }
}

// As many ids as the vocabulary has: [N, T, C] and [N, C, T] are one shape.
TEST(TorchLoss, where_both_shapes_fit_the_classes_are_last) {
  const Sequences data(3, kVocabulary, 2);
  Both both = language("language.pt", data);
  (3 * mean_loss(both.forward({data.ids}).transpose(1, 2), data.targets)).backward();
  EXPECT_LE(both.distance(both.engine.contribution(data.slot())), 1e-6);
}

TEST(TorchLoss, classes_of_images_pixel_by_pixel_are_in_the_second_dimension) {
  torch::manual_seed(3);
  const torch::Tensor images = torch::rand({2, 1, 5, 4}),
                      targets = torch::randint(3, {2, 5, 4}, torch::kLong);
  Both both("per_pixel.pt", "cross-entropy", 3, {field_of("inputs", images)}, field_of("targets", targets));
  const torch::Tensor loss = 2 * mean_loss(both.forward({images}), targets);
  loss.backward();
  Sums sums;
  EXPECT_LE(both.distance(both.engine.contribution({{samples_of(images)}, samples_of(targets)}, 1, &sums)),
            1e-6);
  EXPECT_NEAR(sums.loss, loss.item<double>(), 1e-6 * sums.loss);
}

// The pool's step: contributions added up, divided by the samples.
TEST(TorchLoss, steps_of_the_pool_on_sequences_are_steps_of_torch_on_the_whole_global_batch) {
  const OptimizerOptions options{.kind = OptimizerOptions::Kind::sgd, .learning_rate = 0.5, .momentum = 0.9};
  Both both = language("language.pt", Sequences(1, 6, 1));
  Optimizer optimizer(options, both.engine.engine->description().parameters);
  std::vector<torch::Tensor> leaves;
  for (const auto& [name, tensor] : both.module.named_parameters()) leaves.push_back(tensor);
  torch::optim::SGD reference(leaves, torch::optim::SGDOptions(0.5).momentum(0.9));
  for (std::uint64_t number = 0; number < 20; ++number) {
    std::vector<torch::Tensor> ids, targets;
    Block sum(both.engine.state.values().size());
    std::ranges::fill(sum.values(), 0.0F);
    std::uint64_t samples = 0;
    for (const std::int64_t size : {8, 8, 3}) {
      const Sequences slot(size, 6, number * 3 + ids.size());
      Sums sums;
      const Block block = both.engine.contribution(slot.slot(), 1, &sums);
      for (std::size_t i = 0; i < block.values().size(); ++i) sum.values()[i] += block.values()[i];
      samples += sums.samples;
      ids.push_back(slot.ids);
      targets.push_back(slot.targets);
    }
    optimizer.step(both.engine.state.values(), sum.values(), 1.0F / static_cast<float>(samples), 0.5,
                   nullptr);
    reference.zero_grad();
    mean_loss(both.forward({torch::cat(ids)}).transpose(1, 2), torch::cat(targets)).backward();
    reference.step();
  }
  double difference = 0, norm = 0;
  for (const auto& [name, tensor] : both.module.named_parameters()) {
    const auto values = both.engine.of(both.engine.state, name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double expected = tensor.contiguous().data_ptr<float>()[i];
      difference += (values[i] - expected) * (values[i] - expected);
      norm += expected * expected;
    }
  }
  EXPECT_LE(std::sqrt(difference / norm), 1e-5);
}

TEST(TorchLoss, ignored_targets_do_not_count_and_the_mean_is_over_those_that_do) {
  Sequences data(3, 5, 4);
  data.targets.index_put_({torch::indexing::Slice(), 1}, -100);
  Both both = language("language.pt", data, -100);
  // Each sample has four left, so that torch's mean is the same.
  const torch::Tensor loss = 3 * mean_loss(both.forward({data.ids}).transpose(1, 2), data.targets);
  loss.backward();
  Sums sums;
  EXPECT_LE(both.distance(both.engine.contribution(data.slot(), 1, &sums)), 1e-6);
  EXPECT_NEAR(sums.loss, loss.item<double>(), 1e-6 * sums.loss);
  EXPECT_EQ(both.engine.engine->evaluate(both.engine.state.values(), data.slot())->counted, 12u);

  // One has a single target left, one none: each counts as one sample.
  data.targets.index_put_({1, torch::indexing::Slice(1)}, -100);
  data.targets.index_put_({2}, -100);
  const torch::Tensor outputs = both.forward({data.ids}).transpose(1, 2);
  const auto of = [&](std::int64_t i) {
    return mean_loss(outputs.slice(0, i, i + 1), data.targets.slice(0, i, i + 1));
  };
  const torch::Tensor uneven = of(0) + of(1);
  uneven.backward();
  EXPECT_LE(both.distance(both.engine.contribution(data.slot(), 1, &sums)), 1e-6);
  EXPECT_NEAR(sums.loss, uneven.item<double>(), 1e-6 * sums.loss);
  EXPECT_EQ(sums.samples, 3u);
  EXPECT_EQ(both.engine.engine->evaluate(both.engine.state.values(), data.slot())->counted, 5u);

  data.targets.fill_(-100);
  EXPECT_EQ(both.refusal(data.slot()), "computed");
  EXPECT_EQ(both.engine.engine->evaluate(both.engine.state.values(), data.slot())->counted, 0u);
  Both strict = language("language.pt", data);
  EXPECT_NE(strict.refusal(data.slot()).find("label -100 of sample 0 of a slot, in data of 11 classes"),
            std::string::npos);
}

TEST(TorchLoss, binary_cross_entropy_is_summed_over_samples_and_takes_flags_as_well) {
  torch::manual_seed(5);
  const torch::Tensor inputs = torch::randn({6, 6}), flags = torch::randint(2, {6, 3}).to(torch::kBool);
  const torch::Tensor targets = flags.to(torch::kFloat);
  Both both("linear.pt", "bce", 0, {field_of("inputs", inputs)}, field_of("targets", targets));
  const torch::Tensor loss = 6 * F::binary_cross_entropy_with_logits(both.forward({inputs}), targets);
  loss.backward();
  Sums sums;
  const Block block = both.engine.contribution({{samples_of(inputs)}, samples_of(targets)}, 1, &sums);
  EXPECT_NEAR(sums.loss, loss.item<double>(), 1e-6 * sums.loss);
  EXPECT_LE(both.distance(block), 1e-6);
  Both of_flags("linear.pt", "bce", 0, {field_of("inputs", inputs)}, field_of("targets", flags));
  EXPECT_EQ(of_flags.engine.contribution({{samples_of(inputs)}, samples_of(flags)}), block);
  EXPECT_EQ(
      both.engine.engine->evaluate(both.engine.state.values(), {{samples_of(inputs)}, samples_of(targets)})
          ->counted,
      0u);
}

class MaskedModel : public testing::Test {
 protected:
  MaskedModel() {
    torch::manual_seed(6);
    tokens_ = torch::randint(9, {5, 4}, torch::kLong);
    mask_ = torch::randint(2, {5, 4}).to(torch::kBool);
    number_ = torch::randn({5});
    targets_ = torch::randint(3, {5}, torch::kLong);
  }
  Both with(const std::vector<std::string>& names, const std::vector<torch::Tensor>& tensors) const {
    std::vector<SampleField> fields;
    for (std::size_t i = 0; i < names.size(); ++i)
      fields.push_back(field_of(names[i], tensors[i], tensors[i].scalar_type() == torch::kBool ? 0 : 9));
    return {"masked.pt", "cross-entropy", 3, fields, field_of("targets", targets_)};
  }
  SlotSamples slot(const std::vector<torch::Tensor>& tensors) const {
    SlotSamples samples{.targets = samples_of(targets_)};
    for (const torch::Tensor& tensor : tensors) samples.inputs.push_back(samples_of(tensor));
    return samples;
  }

  torch::Tensor tokens_, mask_, number_, targets_;
};

TEST_F(MaskedModel, gets_its_inputs_by_name_and_those_without_one_in_order) {
  Both named = with({"number", "tokens", "mask"}, {number_, tokens_, mask_});
  (5 * mean_loss(named.forward({mask_, tokens_, number_}), targets_)).backward();
  const Block block = named.engine.contribution(slot({number_, tokens_, mask_}));
  EXPECT_LE(named.distance(block), 1e-6);
  EXPECT_EQ(
      with({"a", "b", "c"}, {mask_, tokens_, number_}).engine.contribution(slot({mask_, tokens_, number_})),
      block);
  EXPECT_EQ(with({"tokens", "b", "c"}, {tokens_, mask_, number_})
                .engine.contribution(slot({tokens_, mask_, number_})),
            block);
}

TEST_F(MaskedModel, gets_ids_and_numbers_of_every_dtype) {
  const Block block = with({"mask", "tokens", "number"}, {mask_, tokens_, number_})
                          .engine.contribution(slot({mask_, tokens_, number_}));
  for (const auto dtype : {torch::kInt, torch::kShort, torch::kChar, torch::kByte}) {
    const torch::Tensor narrow = tokens_.to(dtype);
    EXPECT_EQ(with({"mask", "tokens", "number"}, {mask_, narrow, number_})
                  .engine.contribution(slot({mask_, narrow, number_})),
              block);
  }
  for (const auto dtype : {torch::kDouble, torch::kHalf, torch::kBFloat16}) {
    const torch::Tensor other = number_.to(dtype), rounded = other.to(torch::kFloat);
    EXPECT_EQ(with({"mask", "tokens", "number"}, {mask_, tokens_, other})
                  .engine.contribution(slot({mask_, tokens_, other})),
              with({"mask", "tokens", "number"}, {mask_, tokens_, rounded})
                  .engine.contribution(slot({mask_, tokens_, rounded})));
  }
}

TEST_F(MaskedModel, refuses_samples_that_are_not_what_was_promised) {
  Both both = with({"mask", "tokens", "number"}, {mask_, tokens_, number_});
  const auto refused = [&](const std::vector<torch::Tensor>& tensors, const std::string& words) {
    const std::string refusal = both.refusal(slot(tensors));
    EXPECT_NE(refusal.find(words), std::string::npos) << refusal;
  };
  refused({mask_, tokens_}, "samples with 2 inputs for a model that takes 3");
  torch::Tensor stray = tokens_.clone();
  stray.index_put_({3, 2}, 9);
  refused({mask_, stray, number_}, "id 9 in 'tokens' of sample 3 of a slot; the model takes 0 to 8");
  stray.index_put_({3, 2}, -1);
  refused({mask_, stray, number_}, "id -1 in 'tokens' of sample 3");
  refused({mask_, tokens_.slice(0, 0, 4).contiguous(), number_}, "'tokens' of [4, 4] in a slot of 5 samples");
  refused({mask_, tokens_.to(torch::kFloat), number_}, "'tokens' of f32");
  refused({mask_.to(torch::kByte), tokens_, number_}, "'mask' of u8; the model takes bool");
  refused({mask_, tokens_, tokens_.slice(1, 0, 1).contiguous().view(-1)}, "'number' of i64");
  EXPECT_EQ(both.refusal(slot({mask_, tokens_, number_})), "computed");
}

TEST(TorchLoss, targets_go_to_the_argument_of_their_name) {
  torch::manual_seed(7);
  const torch::Tensor numbers = torch::randn({4, 6}), wanted = torch::randn({4, 3});
  Both both("named_loss.pt", "auto", 0, {field_of("x", numbers)}, field_of("wanted", wanted));
  EXPECT_EQ(both.engine.engine->description().loss, "own");
  (4 * both.forward({wanted, numbers})).backward();
  EXPECT_LE(both.distance(both.engine.contribution({{samples_of(numbers)}, samples_of(wanted)})), 1e-6);
}

std::string refusal_of_model(const std::string& file, const std::string& loss, std::uint32_t classes,
                             std::vector<SampleField> inputs, const SampleField& targets) {
  const auto made = torch_library().make(
      {.model = file, .loss = loss, .inputs = std::move(inputs), .targets = targets, .classes = classes},
      file.ends_with(".pt") ? model_file(file) : "");
  return made.ok() ? "made" : made.error().message;
}

TEST(TorchLoss, what_does_not_fit_is_said_before_any_sample_is_seen) {
  const SampleField ids{.name = "ids", .dtype = DType::u8, .shape = {6}, .ids = 11};
  const SampleField sequence{.name = "targets", .dtype = DType::u8, .shape = {6}};
  const SampleField numbers{.name = "x", .shape = {6}}, three{.name = "y", .shape = {3}};
  const SampleField label{.name = "y", .dtype = DType::i64, .shape = {}};
  const auto says = [](const std::string& refusal, const std::string& words) {
    EXPECT_NE(refusal.find(words), std::string::npos) << refusal;
  };
  EXPECT_EQ(refusal_of_model("language.pt", "auto", 11, {ids}, sequence), "made");
  SampleField more = ids;
  more.ids = 12;
  says(refusal_of_model("language.pt", "auto", 11, {more}, sequence),
       "'ids' of [6] with ids up to 11: RuntimeError: index out of range");
  says(refusal_of_model("language.pt", "auto", 12, {ids}, sequence),
       "needs [2, 6, 12] or [2, 12, 6], or more");
  EXPECT_EQ(refusal_of_model("language.pt", "auto", 10, {ids}, sequence), "made");
  says(refusal_of_model("language.pt", "auto", 11, {ids}, label),
       "gives [2, 6, 11] where cross-entropy over 11");
  says(refusal_of_model("language.pt", "auto", 11, {ids, numbers}, sequence),
       "takes 1 arguments where forward(ids, x) is called");
  says(refusal_of_model("masked.pt", "cross-entropy", 3, {ids, numbers}, label), "takes 4 arguments");
  says(refusal_of_model("linear.pt", "mse", 0, {numbers}, numbers), "gives [2, 3] for targets of [2, 6]");
  says(refusal_of_model("own_loss.pt", "own", 0, {numbers}, numbers), "must match the size");
  says(refusal_of_model("linear.pt", "bce", 3, {numbers}, label), "'bce' is for targets that are no classes");
  says(refusal_of_model("mlp:6,3", "auto", 11, {ids}, label),
       "takes numbers, and 'ids' is ids or flags (u8)");
  says(refusal_of_model("mlp:6,3", "auto", 3, {numbers, three}, label),
       "takes one input, and these samples have 2");
  says(refusal_of_model("mlp:6,11", "auto", 11, {numbers}, sequence), "gives one class a sample");
  says(refusal_of_model("mlp:6,5", "mse", 0, {numbers}, three), "type mlp:6,3");
  says(refusal_of_model("mlp:6,3", "auto", 3, std::vector<SampleField>(9, numbers), label),
       "9 inputs; 1 to 8");
  says(refusal_of_model("mlp:6,3", "auto", 3, {}, label), "0 inputs; 1 to 8");
}

}  // namespace
}  // namespace w5xde
