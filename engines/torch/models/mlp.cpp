#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/nn.h>

#include <algorithm>

#include "models/built_in.h"

namespace w5xde::torch_engine {

namespace {

// Linear, ReLU, Linear, …: named as nn.Sequential(Linear, ReLU, Linear, …) names them. Small ones are all
// overhead, so forward() is nothing but the operations.
class Mlp : public Model {
 public:
  Mlp(const std::vector<std::int64_t>& sizes, at::Device device) {
    input_dims_ = {{sizes.front()}};
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      torch::nn::Linear layer(sizes[i], sizes[i + 1]);
      layer->to(device);
      layers_.push_back({layer->weight, layer->bias});
      parameters_.push_back({fmt::format("{}.weight", 2 * i), layer->weight});
      parameters_.push_back({fmt::format("{}.bias", 2 * i), layer->bias});
    }
  }

  at::Tensor forward(Inputs inputs) override {
    at::Tensor values = inputs[0];
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      if (i > 0) values.relu_();
      values = at::addmm(layers_[i].bias, values, layers_[i].weight.t());
    }
    return values;
  }
  void train(bool /*training*/) override {}
  Draws draws() const override { return Draws::never; }

 private:
  struct Layer {
    at::Tensor weight;
    at::Tensor bias;
  };
  std::vector<Layer> layers_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_mlp(const BuiltIn& asked) {
  const ModelOptions& options = asked.options;
  W5XDE_CHECK(check_numbers(options));
  std::vector<std::int64_t> sizes;
  const Shape& sample_shape = options.inputs[0].shape;
  const auto inputs = static_cast<std::int64_t>(sample_shape.elements());
  W5XDE_TRY(const std::int64_t outputs, outputs_of(options));
  const std::string instead = fmt::format("mlp:{},128,{}", inputs, outputs);
  for (std::string_view rest = asked.settings; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto size = parse_size(rest.substr(0, comma));
    if (!size) {
      return invalid(
          fmt::format("'{}' has a size that is no whole number from 1 on; type {}", options.model, instead));
    }
    sizes.push_back(*size);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (sizes.size() < 2)
    return invalid(fmt::format("'{}' needs two sizes or more; type {}", options.model, instead));
  if (sizes.front() != inputs) {
    sizes.front() = inputs;
    sizes.back() = outputs;
    return invalid(fmt::format("'{}' does not fit samples of {}, which have {} numbers; type mlp:{}",
                               options.model, sample_shape.to_string(), inputs, fmt::join(sizes, ",")));
  }
  if (sizes.back() != outputs) {
    sizes.back() = outputs;
    const std::string wanted = options.classes > 0 ? fmt::format("data of {} classes", outputs)
                                                   : fmt::format("targets of {} numbers", outputs);
    return invalid(fmt::format(
        "'{}' does not fit {}; type mlp:{}{}", options.model, wanted, fmt::join(sizes, ","),
        options.classes > 0 ? ""
                            : ". If the targets are classes, store them as whole numbers, in NumPy "
                              "targets.astype('int64')"));
  }
  double floats = 0;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    floats += static_cast<double>(sizes[i]) * static_cast<double>(sizes[i + 1]);
  W5XDE_CHECK(check_floats(options, floats));
  return std::unique_ptr<Model>(std::make_unique<Mlp>(sizes, asked.device));
}

}  // namespace w5xde::torch_engine
