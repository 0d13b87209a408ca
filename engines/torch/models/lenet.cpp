#include <algorithm>

#include "models/image_model.h"

namespace w5xde::torch_engine {

namespace {

namespace nn = torch::nn;

// Convolutions, then fully connected layers, each of those behind dropout if there is any.
struct LeNet : nn::Module {
  static constexpr std::int64_t kSideMin = 12;

  // Of the layers whose size the data decides.
  static double floats_of(const Image& image, std::int64_t classes) {
    const double pixels = static_cast<double>(image.height) * static_cast<double>(image.width);
    return 150.0 * static_cast<double>(image.channels) + 120.0 * pixels + 84.0 * static_cast<double>(classes);
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

}  // namespace

Result<std::unique_ptr<Model>> make_lenet(const BuiltIn& asked) {
  W5XDE_TRY(const Settings settings, read_settings(asked, 0, "lenet"));
  W5XDE_TRY(const Image image, image_of(asked.options, LeNet::kSideMin));
  const std::int64_t classes = asked.options.classes;
  W5XDE_CHECK(check_floats(asked.options, LeNet::floats_of(image, classes)));
  auto net = std::make_shared<LeNet>(image, classes, settings.dropout);
  return std::unique_ptr<Model>(std::make_unique<ImageModel<LeNet>>(std::move(net), image, asked.device));
}

}  // namespace w5xde::torch_engine
