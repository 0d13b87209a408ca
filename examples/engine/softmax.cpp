// An engine in one file, on no library: softmax regression. The model is a matrix `weight` of classes ×
// features and a vector `bias`; a sample's outputs are weight · features + bias, its loss is their
// cross-entropy.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "w5xde/engine.h"

namespace {

using namespace w5xde;

class Softmax final : public Engine {
 public:
  static Result<std::unique_ptr<Engine>> make(const ModelOptions& options, const std::filesystem::path&) {
    if (options.model != "softmax") return invalid("this engine has one model: --model softmax");
    if (options.inputs.size() != 1 || options.inputs[0].kind() != SampleField::Kind::number)
      return invalid("softmax takes one input, of numbers");
    if (options.classes == 0 || options.targets.shape.rank() > 0)
      return invalid("softmax needs data with one class a sample");
    if (options.ignore_index) return invalid("softmax counts every sample; leave out --ignore-index");
    if (options.loss != "auto" && options.loss != "cross-entropy")
      return invalid("softmax has one loss: --loss cross-entropy");
    if (options.compute != DType::f32) return invalid("softmax computes in f32; leave out --compute");
    const Shape& sample = options.inputs[0].shape;
    const auto features = static_cast<std::int64_t>(sample.elements());
    const std::int64_t classes = options.classes;
    std::unique_ptr<Softmax> engine(new Softmax(sample, options.classes));
    W5XDE_TRY(engine->description_.parameters,
              BlockLayout::make({{"weight", {classes, features}}, {"bias", {classes}}}, options.floats_max));
    W5XDE_TRY(engine->description_.buffers, BlockLayout::make({}, options.floats_max));
    return std::unique_ptr<Engine>(std::move(engine));
  }

  std::string name() const override { return "softmax 1"; }
  const ModelDescription& description() const override { return description_; }
  bool uses_cores() const override { return true; }

  Status initialise(std::uint64_t seed, std::span<float> state) override {
    std::ranges::fill(state, 0.0F);
    std::mt19937_64 random(seed);
    for (float& value : weight_of(state)) value = static_cast<float>(random() >> 40) * 0x1p-28F;
    return {};
  }

  Result<Sums> compute(std::span<const float> state, const Slot& slot, Addends addends,
                       std::span<float> contribution) override {
    std::vector<float> sum(contribution.size());
    W5XDE_TRY(const Sums sums, add_gradient(state, slot.samples, sum));
    for (const float* addend : addends) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += addend[i];
    }
    std::ranges::copy(sum, contribution.begin());
    return sums;
  }

  Result<Evaluation> evaluate(std::span<const float> state, const SlotSamples& samples) override {
    Evaluation evaluation;
    W5XDE_CHECK(each_sample(state, samples, [&](const Sample& sample) {
      evaluation.loss_sum += sample.loss;
      const auto largest = std::ranges::max_element(sample.shares) - sample.shares.begin();
      if (static_cast<std::size_t>(largest) == sample.label) ++evaluation.correct;
      ++evaluation.counted;
      ++evaluation.samples;
    }));
    return evaluation;
  }

 private:
  struct Sample {
    std::span<const float> features;
    std::size_t label = 0;
    std::span<const float> shares;  // softmax of the outputs, one for each class
    double loss = 0;
  };

  Softmax(const Shape& sample, std::uint32_t classes)
      : sample_(sample), features_(sample.elements()), classes_(classes) {
    description_.loss = "cross-entropy";
  }

  template <class Float>
  std::span<Float> weight_of(std::span<Float> block) const {
    return block.first(classes_ * features_);
  }
  template <class Float>
  std::span<Float> bias_of(std::span<Float> block) const {
    return block.subspan(description_.parameters->find("bias")->offset, classes_);
  }

  Result<Sums> add_gradient(std::span<const float> state, const SlotSamples& samples,
                            std::span<float> sum) const {
    Sums sums;
    W5XDE_CHECK(each_sample(state, samples, [&](const Sample& sample) {
      for (std::size_t c = 0; c < classes_; ++c) {
        const float error = sample.shares[c] - (c == sample.label ? 1.0F : 0.0F);
        float* row = &weight_of(sum)[c * features_];
        for (std::size_t i = 0; i < features_; ++i) row[i] += error * sample.features[i];
        bias_of(sum)[c] += error;
      }
      sums = {sums.loss + sample.loss, sums.samples + 1};
    }));
    return sums;
  }

  // Forward for every sample. What comes over the network is checked: its shape, its type, its labels.
  template <class Visit>
  Status each_sample(std::span<const float> state, const SlotSamples& samples, const Visit& visit) const {
    if (samples.inputs.size() != 1) return invalid("softmax takes one input");
    const SampleTensor& inputs = samples.inputs[0];
    const SampleTensor& targets = samples.targets;
    const auto dims = inputs.shape.dims();
    if (dims.empty() || !std::ranges::equal(dims.subspan(1), sample_.dims()))
      return invalid("samples of " + inputs.shape.to_string() + " for a model of " + sample_.to_string());
    if (targets.shape != Shape{dims[0]}) return invalid("targets of " + targets.shape.to_string());
    std::vector<float> features(features_), shares(classes_);
    for (std::size_t row = 0; row < static_cast<std::size_t>(dims[0]); ++row) {
      if (!read_features(inputs, row, features)) return invalid("softmax takes f32 and u8 inputs");
      const std::int64_t label = read_label(targets, row);
      if (label < 0 || label >= static_cast<std::int64_t>(classes_))
        return invalid("label " + std::to_string(label) + " in data of " + std::to_string(classes_) +
                       " classes");
      for (std::size_t c = 0; c < classes_; ++c) {
        shares[c] = bias_of(state)[c];
        for (std::size_t i = 0; i < features_; ++i)
          shares[c] += weight_of(state)[c * features_ + i] * features[i];
      }
      const float largest = *std::ranges::max_element(shares);
      float total = 0;
      for (float& share : shares) total += share = std::exp(share - largest);
      for (float& share : shares) share /= total;
      const auto of = static_cast<std::size_t>(label);
      visit(Sample{features, of, shares, -std::log(static_cast<double>(shares[of]))});
    }
    return {};
  }

  static bool read_features(const SampleTensor& inputs, std::size_t row, std::vector<float>& features) {
    const std::byte* from = inputs.bytes.data() + row * features.size() * size_of(inputs.dtype);
    if (inputs.dtype == DType::f32) {
      std::memcpy(features.data(), from, features.size() * sizeof(float));
    } else {
      for (float& feature : features) feature = static_cast<float>(*from++) / 255;
    }
    return inputs.dtype == DType::f32 || inputs.dtype == DType::u8;
  }

  // -1: not a type of label.
  static std::int64_t read_label(const SampleTensor& targets, std::size_t row) {
    const std::byte* from = targets.bytes.data() + row * size_of(targets.dtype);
    std::int64_t wide = -1;
    if (targets.dtype == DType::u8) return std::to_integer<std::int64_t>(*from);
    if (targets.dtype == DType::i64) std::memcpy(&wide, from, sizeof(wide));
    if (targets.dtype == DType::i32) {
      std::int32_t narrow = 0;
      std::memcpy(&narrow, from, sizeof(narrow));
      wide = narrow;
    }
    return wide;
  }

  Shape sample_;
  std::size_t features_;
  std::size_t classes_;
  ModelDescription description_;
};

}  // namespace

W5XDE_EXPORT_ENGINE(Softmax::make)
