#include <fmt/format.h>

#include "models/image_model.h"

namespace w5xde::torch_engine {

namespace {

namespace nn = torch::nn;

nn::Conv2d conv3x3(std::int64_t from, std::int64_t to, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, 3).stride(stride).padding(1).bias(false));
}

enum class ShortcutNames { own, torchvision };

// Two convolutions beside a shortcut.
struct BasicBlock : nn::Module {
  BasicBlock(std::int64_t from, std::int64_t to, std::int64_t stride, ShortcutNames names) {
    conv1 = register_module("conv1", conv3x3(from, to, stride));
    bn1 = register_module("bn1", nn::BatchNorm2d(to));
    conv2 = register_module("conv2", conv3x3(to, to, 1));
    bn2 = register_module("bn2", nn::BatchNorm2d(to));
    if (from == to && stride == 1) return;
    shortcut = nn::Conv2d(nn::Conv2dOptions(from, to, 1).stride(stride).bias(false));
    shortcut_bn = nn::BatchNorm2d(to);
    if (names == ShortcutNames::torchvision) {
      register_module("downsample", nn::Sequential(shortcut, shortcut_bn));
    } else {
      register_module("shortcut", shortcut);
      register_module("shortcut_bn", shortcut_bn);
    }
  }

  at::Tensor forward(const at::Tensor& inputs) {
    at::Tensor values = at::relu(bn1->forward(conv1->forward(inputs)));
    values = bn2->forward(conv2->forward(values));
    return at::relu(values + (shortcut ? shortcut_bn->forward(shortcut->forward(inputs)) : inputs));
  }

  nn::Conv2d conv1{nullptr}, conv2{nullptr}, shortcut{nullptr};
  nn::BatchNorm2d bn1{nullptr}, bn2{nullptr}, shortcut_bn{nullptr};
};

// What both have: a convolution, blocks, the mean of each channel, a linear layer.
struct ResNet : nn::Module {
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

constexpr int kBlocksPerStage = 2;

// The ResNet for small images: three stages of two blocks, of 16, 32 and 64 channels.
struct ResNetSmall : ResNet {
  static double floats_of(const Image& image, std::int64_t classes) {
    return 144.0 * static_cast<double>(image.channels) + 64.0 * static_cast<double>(classes);
  }

  ResNetSmall(const Image& image, std::int64_t classes) {
    conv = register_module("conv", conv3x3(image.channels, 16, 1));
    bn = register_module("bn", nn::BatchNorm2d(16));
    std::int64_t channels = 16;
    for (const std::int64_t width : {16, 32, 64}) {
      for (int i = 0; i < kBlocksPerStage; ++i) {
        const std::int64_t stride = width != channels ? 2 : 1;
        auto block = std::make_shared<BasicBlock>(channels, width, stride, ShortcutNames::own);
        blocks.push_back(register_module(fmt::format("block{}", blocks.size() + 1), std::move(block)));
        channels = width;
      }
    }
    fc = register_module("fc", nn::Linear(channels, classes));
  }
};

// ResNet-18 as it is used for images of 32 by 32: the first convolution is 3 by 3, and no pooling follows it.
// All else, the names and the initial values too, is torchvision's.
struct ResNet18 : ResNet {
  static double floats_of(const Image& image, std::int64_t classes) {
    return 11'167'104.0 + 576.0 * static_cast<double>(image.channels) + 513.0 * static_cast<double>(classes);
  }

  ResNet18(const Image& image, std::int64_t classes) {
    conv = register_module("conv1", conv3x3(image.channels, 64, 1));
    bn = register_module("bn1", nn::BatchNorm2d(64));
    std::int64_t channels = 64;
    for (int stage = 1; stage <= 4; ++stage) {
      nn::Sequential layer;
      for (int i = 0; i < kBlocksPerStage; ++i) {
        const std::int64_t width = std::int64_t{32} << stage;
        const std::int64_t stride = width != channels ? 2 : 1;
        blocks.push_back(std::make_shared<BasicBlock>(channels, width, stride, ShortcutNames::torchvision));
        layer->push_back(blocks.back());
        channels = width;
      }
      register_module(fmt::format("layer{}", stage), layer);
    }
    fc = register_module("fc", nn::Linear(channels, classes));
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* convolution = module->as<nn::Conv2d>())
        nn::init::kaiming_normal_(convolution->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
};

template <class Net>
Result<std::unique_ptr<Model>> make_resnet(const BuiltIn& asked, const char* name) {
  if (!asked.settings.empty())
    return invalid(fmt::format("'{}' is not understood; type {}", asked.options.model, name));
  W5XDE_TRY(const Image image, image_of(asked.options, 1));
  W5XDE_CHECK(check_floats(asked.options, Net::floats_of(image, asked.options.classes)));
  auto net = std::make_shared<Net>(image, asked.options.classes);
  return std::unique_ptr<Model>(std::make_unique<ImageModel<Net>>(std::move(net), image, asked.device));
}

}  // namespace

Result<std::unique_ptr<Model>> make_resnet_small(const BuiltIn& asked) {
  return make_resnet<ResNetSmall>(asked, "resnet-small");
}

Result<std::unique_ptr<Model>> make_resnet18(const BuiltIn& asked) {
  return make_resnet<ResNet18>(asked, "resnet18");
}

}  // namespace w5xde::torch_engine
