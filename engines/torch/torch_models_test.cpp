// Models that are asked for by name, against PyTorch's own layers (testdata/make_references.py), and what
// they promise beside that. (Of mlp, lenet and resnet-small: torch_engine_test.cpp and
// torch_reference_test.cpp.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine_on_test.h"
#include "tensor/safetensors.h"

namespace w5xde {
namespace {

constexpr std::uint32_t kVocabulary = 11;
constexpr std::int64_t kTokens = 6;
const Shape kImage{3, 8, 12};

// What a model of text is made for.
ModelOptions text_options(const std::string& model, std::uint32_t vocabulary = kVocabulary,
                          std::int64_t tokens = kTokens) {
  return {.model = model,
          .loss = "auto",
          .inputs = {{.name = "inputs", .dtype = DType::i64, .shape = Shape{tokens}, .ids = vocabulary}},
          .targets = {.name = "targets", .dtype = DType::i64, .shape = Shape{tokens}},
          .classes = vocabulary};
}

// Random ids, and for each a random one that follows.
struct Text {
  Text(std::int64_t samples, std::uint64_t seed) : shape{samples, kTokens} {
    Random random(seed);
    for (auto* ids : {&inputs, &targets}) {
      ids->resize(shape.elements());
      for (std::int64_t& id : *ids) id = static_cast<std::int64_t>(random.below(kVocabulary));
    }
  }
  SlotSamples slot() const {
    return {.inputs = {{std::as_bytes(std::span(inputs)), DType::i64, shape}},
            .targets = {std::as_bytes(std::span(targets)), DType::i64, shape}};
  }

  Shape shape;
  std::vector<std::int64_t> inputs, targets;
};

struct Case {
  std::string model;
  bool text;
  bool draws = false;

  EngineOnTest engine() const {
    return EngineOnTest(text ? text_options(model) : options_of(model, kImage, 5, "auto"));
  }
};

const Case kCases[] = {{"gpt:2,2,8,6", true},  {"gpt:1,1,4,6,dropout=0.5", true, true},  {"lstm:2,8", true},
                       {"vit:4,2,2,8", false}, {"vit:4,1,2,8,dropout=0.5", false, true}, {"resnet18", false}};

const TensorView& tensor_of(const SafetensorsFile& file, const std::string& name) {
  const TensorView* view = file.contents().find(name);
  if (view == nullptr) throw std::runtime_error("the reference has no " + name);
  return *view;
}

std::span<const float> floats_of(const TensorView& view) {
  return {reinterpret_cast<const float*>(view.bytes().data()), view.shape().elements()};
}

SampleTensor samples_of(const TensorView& view) {
  return {view.bytes(), view.dtype(), view.shape()};
}

// |a - b| / |b|, Euclidean.
struct Distance {
  void add(std::span<const float> a, std::span<const float> b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(double{a[i]} - double{b[i]}, 2);
      norm += std::pow(double{b[i]}, 2);
    }
  }
  double value() const { return std::sqrt(difference / norm); }

  double difference = 0, norm = 0;
};

void take_state(EngineOnTest& on_test, const SafetensorsFile& file) {
  float* block = on_test.state.values().data();
  for (const auto& layout :
       {on_test.engine->description().parameters, on_test.engine->description().buffers}) {
    for (const auto& entry : layout->entries()) {
      const TensorView& view = tensor_of(file, entry.name);
      ASSERT_EQ(view.shape(), entry.shape) << entry.name;
      if (view.dtype() == DType::f32) {
        std::ranges::copy(floats_of(view), block + entry.offset);
      } else {
        block[entry.offset] = 0;  // a counter of batches
      }
    }
    block += layout->floats();
  }
}

TEST(TorchModels, they_compute_what_pytorch_s_own_layers_compute) {
  for (const std::string name : {"gpt", "lstm", "vit", "resnet18"}) {
    SCOPED_TRACE(name);
    const auto file = SafetensorsFile::open(model_file(name + ".safetensors")).value();
    const auto* asked =
        std::ranges::find_if(kCases, [&](const Case& one) { return one.model.starts_with(name); });
    EngineOnTest on_test = asked->engine();
    take_state(on_test, file);
    const SlotSamples slot{.inputs = {samples_of(tensor_of(file, "inputs"))},
                           .targets = samples_of(tensor_of(file, "targets"))};
    Sums sums;
    const Block block = on_test.contribution(slot, 1, &sums);
    EXPECT_NEAR(sums.loss, double{floats_of(tensor_of(file, "loss"))[0]}, 1e-5 * sums.loss);
    Distance gradients;
    std::size_t known = 0;
    for (const auto& entry : on_test.engine->description().parameters->entries()) {
      gradients.add(on_test.of(block, entry.name), floats_of(tensor_of(file, "gradient/" + entry.name)));
      ++known;
    }
    EXPECT_LE(gradients.value(), 1e-5);
    // No parameter of the reference is missing.
    EXPECT_EQ(known, static_cast<std::size_t>(std::ranges::count_if(
                         file.contents().tensors,
                         [](const NamedTensor& tensor) { return tensor.name.starts_with("gradient/"); })));
    const auto outputs = on_test.engine->predict(on_test.state.values(), slot.inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    EXPECT_EQ(outputs->shape, tensor_of(file, "outputs").shape());
    Distance distance;
    distance.add(outputs->values, floats_of(tensor_of(file, "outputs")));
    EXPECT_LE(distance.value(), 1e-5);
  }
}

TEST(TorchModels, have_as_many_parameters_as_the_formula_says) {
  const auto parameters_of = [](const ModelOptions& options) {
    return EngineOnTest(options).engine->description().parameters->parameters();
  };
  const auto block = [](std::uint64_t width) { return 12 * width * width + 13 * width; };
  EXPECT_EQ(parameters_of(text_options("gpt:4,4,128,128", 256, 128)),
            256u * 128 + 128 * 128 + 4 * block(128) + 2 * 128);
  EXPECT_EQ(parameters_of(text_options("lstm:2,16", 50)), 50u * 16 + 2 * (8 * 16 * 16 + 8 * 16) + 50 * 17);
  EXPECT_EQ(parameters_of(options_of("vit:4,3,2,16", Shape{3, 32, 32}, 10)),
            16u + 16 * (3 * 16 + 1) + 65 * 16 + 3 * block(16) + 2 * 16 + 10 * 17);
  // torchvision's has 11,689,512 with 7 × 7 × 3 × 64 weights in front and 1,000 classes behind.
  EXPECT_EQ(parameters_of(options_of("resnet18", Shape{3, 32, 32}, 10)),
            11'689'512u - 64 * 3 * (49 - 9) - 990 * 513);
}

TEST(TorchModels, the_output_layer_of_gpt_is_its_embedding_and_listed_once) {
  EngineOnTest gpt(text_options("gpt:1,2,8,6"));
  const auto& layout = *gpt.engine->description().parameters;
  std::set<std::string> names;
  for (const auto& entry : layout.entries()) names.insert(entry.name);
  EXPECT_EQ(names.size(), 16u);
  EXPECT_TRUE(names.contains("transformer.wte.weight"));
  EXPECT_TRUE(names.contains("transformer.h.0.attn.c_attn.bias"));
  EXPECT_FALSE(names.contains("lm_head.weight"));
  // An id that is in no sample has a gradient all the same: the output layer's.
  Text text(4, 1);
  std::ranges::replace(text.inputs, 3, 4);
  const Block block = gpt.contribution(text.slot());
  const auto row = gpt.of(block, "transformer.wte.weight").subspan(3 * 8, 8);
  EXPECT_TRUE(std::ranges::any_of(row, [](float value) { return std::abs(value) > 1e-6F; }));
}

TEST(TorchModels, a_transformer_begins_with_the_usual_deviations) {
  EngineOnTest gpt(text_options("gpt:8,4,64,6"));
  const auto deviation = [&](const std::string& name) {
    double squares = 0;
    const auto values = gpt.of(gpt.state, name);
    for (const float value : values) squares += double{value} * double{value};
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  EXPECT_NEAR(deviation("transformer.h.3.attn.c_attn.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("transformer.h.3.mlp.c_fc.weight"), 0.02, 0.001);
  EXPECT_NEAR(deviation("transformer.h.3.attn.c_proj.weight"), 0.02 / 4, 0.0003);
  EXPECT_NEAR(deviation("transformer.h.3.mlp.c_proj.weight"), 0.02 / 4, 0.0003);
  EXPECT_EQ(deviation("transformer.h.3.mlp.c_proj.bias"), 0);
  EXPECT_EQ(deviation("transformer.ln_f.weight"), 1);
  // So that an untrained model knows nothing: each byte is about as likely as any other.
  const Text text(8, 1);
  const auto evaluation = gpt.engine->evaluate(gpt.state.values(), text.slot());
  EXPECT_NEAR(evaluation->loss_sum / 8, std::log(kVocabulary), 0.2);
}

TEST(TorchModels, contributions_and_outputs_follow_from_samples_state_and_seed) {
  for (const Case& test : kCases) {
    SCOPED_TRACE(test.model);
    EngineOnTest on_test = test.engine(), fresh = test.engine();
    EXPECT_EQ(on_test.state, fresh.state);
    const Text text(5, 1), other_text(3, 2);
    const Samples images(5, kImage, 5, 1), other_images(3, kImage, 5, 2);
    const SlotSamples slot = test.text ? text.slot() : images.slot();
    const SlotSamples other = test.text ? other_text.slot() : other_images.slot();
    const Block first = on_test.contribution(slot, 7);
    const auto outputs = on_test.engine->predict(on_test.state.values(), slot.inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    on_test.contribution(other, 8);
    EXPECT_EQ(on_test.contribution(slot, 7), first);
    EXPECT_EQ(on_test.contribution(slot, 9) != first, test.draws);
    EXPECT_EQ(on_test.engine->predict(on_test.state.values(), slot.inputs)->values, outputs->values);
    EXPECT_EQ(fresh.engine->predict(fresh.state.values(), slot.inputs)->values, outputs->values);
    EXPECT_EQ(fresh.contribution(slot, 7), first);
  }
}

TEST(TorchModels, a_language_model_does_not_see_what_comes_later) {
  for (const Case& test : kCases) {
    if (!test.text) continue;
    SCOPED_TRACE(test.model);
    EngineOnTest on_test = test.engine();
    Text text(1, 1);
    const auto row = [&](std::int64_t token) {
      const auto outputs = on_test.engine->predict(on_test.state.values(), text.slot().inputs);
      EXPECT_EQ(outputs->shape, (Shape{1, kTokens, kVocabulary}));
      const auto* first = outputs->values.data() + token * kVocabulary;
      return std::vector<float>(first, first + kVocabulary);
    };
    const auto before = row(3);
    text.inputs[4] = (text.inputs[4] + 1) % kVocabulary;
    EXPECT_EQ(row(3), before);
    text.inputs[2] = (text.inputs[2] + 1) % kVocabulary;
    EXPECT_NE(row(3), before);
  }
}

TEST(TorchModels, what_does_not_fit_is_refused_with_what_to_type_instead) {
  const auto expect = [](const ModelOptions& options, std::string_view words,
                         ErrorKind kind = ErrorKind::invalid) {
    SCOPED_TRACE(options.model);
    const auto made = torch_library().make(options, {});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().kind, kind);
    EXPECT_NE(made.error().message.find(words), std::string::npos) << made.error().message;
  };
  for (const char* model :
       {"gpt", "gpt:", "gpt:4", "gpt:4,4,128,6,", "gpt:4,4,128,6,7", "gpt:4,4,-1,6", "gpt:4,4,128,x",
        "gpt:4,4,128,6,dropout=1", "gpt:4,4,128,6,dropout=0.1,dropout=0.1"})
    expect(text_options(model), "type gpt:4,4,128,6");
  expect(text_options("gpt:4,3,128,6"), "type gpt:4,3,129,6");
  expect(text_options("gpt:4,4,128,128"), "type gpt:4,4,128,6");
  expect(text_options("gpt:257,1,1,6"), "256 layers", ErrorKind::overloaded);
  expect(text_options("gpt:1,1,8,5000", kVocabulary, 5000), "4096 tokens", ErrorKind::overloaded);
  expect(text_options("gpt:200,1,200000000,6"), "parameters", ErrorKind::overloaded);
  expect(text_options("lstm"), "type lstm:2,256");
  expect(text_options("lstm:2,16,dropout=0.5"), "type lstm:2,16");
  expect(text_options("lstm:300,16"), "256 layers", ErrorKind::overloaded);
  expect(text_options("lstm:2,200000000"), "parameters", ErrorKind::overloaded);
  for (const char* model : {"gpt:4,4,128,6", "lstm:2,16"}) {
    expect(options_of(model, kImage, 5), "--data text:FILE");
    ModelOptions shorter = text_options(model);
    shorter.targets.shape = Shape{};
    expect(shorter, "--data text:FILE");
  }
  expect(options_of("vit:5,2,2,8", kImage, 5), "type vit:4,2,2,8");
  expect(options_of("vit:4,2,3,8", kImage, 5), "type vit:4,2,3,9");
  expect(options_of("vit:4,2,2", kImage, 5), "type vit:4,6,4,128");
  expect(options_of("vit:4,257,2,8", kImage, 5), "256 layers", ErrorKind::overloaded);
  expect(options_of("vit:4,2,1,200000000", kImage, 5), "parameters", ErrorKind::overloaded);
  expect(options_of("vit:4,2,2,8", Shape{8}, 5), "takes images");
  expect(options_of("resnet18:3", kImage, 5), "type resnet18");
  expect(options_of("resnet18", kImage, UINT32_MAX), "parameters", ErrorKind::overloaded);
  for (const char* model : {"vit:4,2,2,8", "resnet18"}) expect(text_options(model), "takes numbers");
  ModelOptions small = text_options("gpt:4,4,128,6");
  small.floats_max = 1000;
  expect(small, "1000 are the most here", ErrorKind::overloaded);
}

TEST(TorchModels, an_id_past_the_vocabulary_is_refused) {
  EngineOnTest gpt(text_options("gpt:1,1,4,6"));
  Text text(2, 1);
  text.inputs[7] = kVocabulary;
  Block block(gpt.engine->description().floats());
  const auto computed = gpt.engine->compute(gpt.state.values(), text.slot(), 1, block.values());
  ASSERT_FALSE(computed.ok());
  EXPECT_NE(computed.error().message.find("id 11 in 'inputs' of sample 1"), std::string::npos)
      << computed.error().message;
  EXPECT_FALSE(gpt.engine->predict(gpt.state.values(), text.slot().inputs).ok());
}

TEST(TorchModels, a_model_by_name_is_no_file_to_save) {
  EngineOnTest gpt(text_options("gpt:1,1,4,6"));
  const Status saved = gpt.engine->save_model(gpt.state.values(), "never.pt", {});
  ASSERT_FALSE(saved.ok());
  EXPECT_NE(saved.error().message.find(".safetensors"), std::string::npos);
  EngineOnTest own("own_classes.pt", Shape{6}, 4, "own");
  EXPECT_FALSE(own.engine->predict(own.state.values(), Samples(2, Shape{6}, 4, 1).slot().inputs).ok());
}

}  // namespace
}  // namespace w5xde
