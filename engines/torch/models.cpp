#include "model.h"

#include <fmt/format.h>
#include <torch/nn.h>

#include <charconv>
#include <optional>
#include <string_view>

namespace w5xde::torch_engine {

at::Tensor Model::own_loss(Inputs, const at::Tensor&) {
  TORCH_CHECK(false, "this model has no loss of its own");
}

namespace {

namespace nn = torch::nn;

constexpr std::string_view kKnownModels =
    "mlp:INPUTS,HIDDEN,…,OUTPUTS (mlp:784,128,10), lenet, lenet:dropout=0.25, resnet-small, or a TorchScript "
    "file";

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Linear, ReLU, Linear, …: named as nn.Sequential(Linear, ReLU, Linear, …) names them. Small ones are all
// overhead, so forward() is nothing but the operations.
class Mlp : public Model {
 public:
  Mlp(const std::vector<std::int64_t>& sizes, at::Device device) {
    input_dims_ = {{sizes.front()}};
    for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
      nn::Linear layer(sizes[i], sizes[i + 1]);
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
  bool draws() const override { return false; }

 private:
  struct Layer {
    at::Tensor weight;
    at::Tensor bias;
  };
  std::vector<Layer> layers_;
};

struct Image {
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
};

// Convolutions, then fully connected layers, each of those behind dropout if there is any.
struct LeNet : nn::Module {
  static constexpr std::int64_t kSideMin = 12;

  // Of the layers whose size the data decides. In doubles nothing overflows.
  static std::uint64_t floats_of(const Image& image, std::int64_t classes) {
    const double pixels = static_cast<double>(image.height) * static_cast<double>(image.width);
    return static_cast<std::uint64_t>(150.0 * static_cast<double>(image.channels) + 120.0 * pixels +
                                      84.0 * static_cast<double>(classes));
  }

  LeNet(const Image& image, std::int64_t classes, double dropout) : dropout_rate(dropout) {
    const std::int64_t height = (image.height / 2 - 4) / 2;
    const std::int64_t width = (image.width / 2 - 4) / 2;
    conv1 = register_module("conv1", nn::Conv2d(nn::Conv2dOptions(image.channels, 6, 5).padding(2)));
    conv2 = register_module("conv2", nn::Conv2d(nn::Conv2dOptions(6, 16, 5)));
    fc1 = register_module("fc1", nn::Linear(16 * height * width, 120));
    fc2 = register_module("fc2", nn::Linear(120, 84));
    fc3 = register_module("fc3", nn::Linear(84, classes));
  }

  bool draws() const { return dropout_rate > 0; }

  at::Tensor drop(const at::Tensor& values) const {
    return draws() ? at::dropout(values, dropout_rate, is_training()) : values;
  }

  at::Tensor forward(const at::Tensor& inputs) {
    at::Tensor values = at::max_pool2d(at::relu(conv1->forward(inputs)), {2, 2});
    values = at::max_pool2d(at::relu(conv2->forward(values)), {2, 2}).flatten(1);
    values = at::relu(fc1->forward(drop(values)));
    values = at::relu(fc2->forward(drop(values)));
    return fc3->forward(drop(values));
  }

  double dropout_rate;
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::Linear fc1{nullptr}, fc2{nullptr}, fc3{nullptr};
};

nn::Conv2d conv3x3(std::int64_t from, std::int64_t to, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, 3).stride(stride).padding(1).bias(false));
}

// Two convolutions beside a shortcut.
struct BasicBlock : nn::Module {
  BasicBlock(std::int64_t from, std::int64_t to, std::int64_t stride) {
    conv1 = register_module("conv1", conv3x3(from, to, stride));
    bn1 = register_module("bn1", nn::BatchNorm2d(to));
    conv2 = register_module("conv2", conv3x3(to, to, 1));
    bn2 = register_module("bn2", nn::BatchNorm2d(to));
    if (from == to && stride == 1) return;
    shortcut =
        register_module("shortcut", nn::Conv2d(nn::Conv2dOptions(from, to, 1).stride(stride).bias(false)));
    shortcut_bn = register_module("shortcut_bn", nn::BatchNorm2d(to));
  }

  at::Tensor forward(const at::Tensor& inputs) {
    at::Tensor values = at::relu(bn1->forward(conv1->forward(inputs)));
    values = bn2->forward(conv2->forward(values));
    return at::relu(values + (shortcut ? shortcut_bn->forward(shortcut->forward(inputs)) : inputs));
  }

  nn::Conv2d conv1{nullptr}, conv2{nullptr}, shortcut{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, shortcut_bn{nullptr};
};

// The ResNet for small images: three stages of two blocks, of 16, 32 and 64 channels.
struct ResNetSmall : nn::Module {
  static constexpr std::int64_t kBlocksPerStage = 2;

  static std::uint64_t floats_of(const Image& image, std::int64_t classes) {
    return static_cast<std::uint64_t>(144.0 * static_cast<double>(image.channels) +
                                      64.0 * static_cast<double>(classes));
  }

  ResNetSmall(const Image& image, std::int64_t classes) {
    conv = register_module("conv", conv3x3(image.channels, 16, 1));
    bn = register_module("bn", nn::BatchNorm2d(16));
    std::int64_t channels = 16;
    for (const std::int64_t width : {16, 32, 64}) {
      for (std::int64_t i = 0; i < kBlocksPerStage; ++i) {
        const std::int64_t stride = width != channels ? 2 : 1;
        auto block = std::make_shared<BasicBlock>(channels, width, stride);
        blocks.push_back(register_module(fmt::format("block{}", blocks.size() + 1), std::move(block)));
        channels = width;
      }
    }
    fc = register_module("fc", nn::Linear(channels, classes));
  }

  static bool draws() { return false; }

  at::Tensor forward(const at::Tensor& inputs) {
    at::Tensor values = at::relu(bn->forward(conv->forward(inputs)));
    for (const auto& block : blocks) values = block->forward(values);
    return fc->forward(values.mean({2, 3}));
  }

  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d bn{nullptr};
  std::vector<std::shared_ptr<BasicBlock>> blocks;
  nn::Linear fc{nullptr};
};

template <class Net>
class ImageModel : public Model {
 public:
  ImageModel(std::shared_ptr<Net> net, const Image& image, at::Device device) : net_(std::move(net)) {
    net_->to(device);
    input_dims_ = {{image.channels, image.height, image.width}};
    for (const auto& item : net_->named_parameters()) parameters_.push_back({item.key(), item.value()});
    for (const auto& item : net_->named_buffers()) buffers_.push_back({item.key(), item.value()});
  }

  at::Tensor forward(Inputs inputs) override { return net_->forward(inputs[0]); }
  void train(bool training) override { net_->train(training); }
  bool draws() const override { return net_->draws(); }

 private:
  std::shared_ptr<Net> net_;
};

// Before torch allocates them. Biases and the like are left out of `floats`: they are few.
Status check_floats(const ModelOptions& options, std::uint64_t floats) {
  const std::uint64_t floats_max = std::min(kFloatsMax, options.floats_max);
  if (floats <= floats_max) return {};
  return overloaded(
      fmt::format("'{}' has {} parameters; {} are the most here", options.model, floats, floats_max));
}

// For models of one input of numbers.
Status check_numbers(const ModelOptions& options) {
  if (options.inputs.size() != 1)
    return invalid(
        fmt::format("'{}' takes one input, and these samples have {}", options.model, options.inputs.size()));
  const SampleField& input = options.inputs[0];
  if (input.kind() == SampleField::Kind::number) return {};
  return invalid(
      fmt::format("'{}' takes numbers, and '{}' is ids or flags ({}); store it as f32, or as u8 pixels",
                  options.model, input.name, name_of(input.dtype)));
}

// For models that give one row of outputs a sample: how many the loss wants.
Result<std::int64_t> outputs_of(const ModelOptions& options) {
  if (options.classes == 0) return static_cast<std::int64_t>(options.targets.shape.elements());
  if (options.targets.shape.rank() == 0) return std::int64_t{options.classes};
  return invalid(
      fmt::format("'{}' gives one class a sample, and the targets of a sample are {}{}", options.model,
                  options.targets.shape.to_string(),
                  options.targets.shape.elements() == 1 ? "; save them with array.reshape(-1)" : ""));
}

Result<std::unique_ptr<Model>> make_mlp(const ModelOptions& options, std::string_view sizes_text,
                                        at::Device device) {
  W5XDE_CHECK(check_numbers(options));
  std::vector<std::int64_t> sizes;
  const Shape& sample_shape = options.inputs[0].shape;
  const auto inputs = static_cast<std::int64_t>(sample_shape.elements());
  W5XDE_TRY(const std::int64_t outputs, outputs_of(options));
  const std::string instead = fmt::format("mlp:{},128,{}", inputs, outputs);
  for (std::string_view rest = sizes_text; !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const auto size = parse_number<std::int64_t>(rest.substr(0, comma));
    // What BlockLayout bounds in the end; here it keeps a product of two sizes from overflowing.
    if (!size || *size < 1 || *size > (std::int64_t{1} << 28)) {
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
    return invalid(
        fmt::format("'{}' does not fit {}; type mlp:{}", options.model, wanted, fmt::join(sizes, ",")));
  }
  std::uint64_t floats = 0;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    floats += static_cast<std::uint64_t>(sizes[i] * sizes[i + 1]);
  W5XDE_CHECK(check_floats(options, floats));
  return std::unique_ptr<Model>(std::make_unique<Mlp>(sizes, device));
}

Result<Image> image_of(const ModelOptions& options, std::int64_t side_min) {
  W5XDE_CHECK(check_numbers(options));
  const Shape& shape = options.inputs[0].shape;
  if (options.classes == 0) {
    return invalid(fmt::format("'{}' classifies, and this data has no classes", options.model));
  }
  W5XDE_CHECK(outputs_of(options));
  if (shape.rank() != 2 && shape.rank() != 3) {
    return invalid(
        fmt::format("'{}' takes images, [height, width] or [channels, height, width], and these samples are "
                    "{}; type mlp:{},128,{}",
                    options.model, shape.to_string(), shape.elements(), options.classes));
  }
  const std::size_t first = shape.rank() - 2;
  const Image image{first == 1 ? shape[0] : 1, shape[first], shape[first + 1]};
  if (image.channels < 1 || std::min(image.height, image.width) < side_min) {
    return invalid(fmt::format("'{}' needs images of {} by {} or more, and these samples are {}",
                               options.model, side_min, side_min, shape.to_string()));
  }
  return image;
}

Result<std::unique_ptr<Model>> make_lenet(const ModelOptions& options, std::string_view settings,
                                          at::Device device) {
  double dropout = 0;
  if (!settings.empty()) {
    constexpr std::string_view kDropout = "dropout=";
    const auto rate = settings.starts_with(kDropout) ? parse_number<double>(settings.substr(kDropout.size()))
                                                     : std::nullopt;
    if (!rate || !(*rate >= 0 && *rate < 1)) {
      return invalid(
          fmt::format("'{}' is not understood; type lenet, or lenet:dropout=0.25 with a rate from 0 to "
                      "less than 1",
                      options.model));
    }
    dropout = *rate;
  }
  W5XDE_TRY(const Image image, image_of(options, LeNet::kSideMin));
  W5XDE_CHECK(check_floats(options, LeNet::floats_of(image, options.classes)));
  auto net = std::make_shared<LeNet>(image, options.classes, dropout);
  return std::unique_ptr<Model>(std::make_unique<ImageModel<LeNet>>(std::move(net), image, device));
}

Result<std::unique_ptr<Model>> make_resnet_small(const ModelOptions& options, std::string_view settings,
                                                 at::Device device) {
  if (!settings.empty())
    return invalid(fmt::format("'{}' is not understood; type resnet-small", options.model));
  W5XDE_TRY(const Image image, image_of(options, 1));
  W5XDE_CHECK(check_floats(options, ResNetSmall::floats_of(image, options.classes)));
  auto net = std::make_shared<ResNetSmall>(image, options.classes);
  return std::unique_ptr<Model>(std::make_unique<ImageModel<ResNetSmall>>(std::move(net), image, device));
}

}  // namespace

Result<std::unique_ptr<Model>> make_built_in(const ModelOptions& options, at::Device device) {
  const std::string_view text = options.model;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  const std::string_view settings = text.substr(std::min(colon + 1, text.size()));
  if (name == "mlp") return make_mlp(options, settings, device);
  if (name == "lenet") return make_lenet(options, settings, device);
  if (name == "resnet-small") return make_resnet_small(options, settings, device);
  return invalid(fmt::format("there is no model '{}'; there are {}", text, kKnownModels));
}

}  // namespace w5xde::torch_engine
