#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "models/image_model.h"
#include "models/transformer.h"

namespace w5xde::torch_engine {

namespace {

// Pieces of an image as tokens behind a class token, from which it is classified. Named as torchvision names
// its VisionTransformer.
class VisionTransformer : public Model {
 public:
  VisionTransformer(const TransformerOptions& options, const Image& image, std::int64_t patch,
                    std::int64_t classes, at::Device device)
      : dropout_(options.dropout), patch_(patch) {
    input_dims_ = {{image.channels, image.height, image.width}};
    const std::int64_t patches = (image.height / patch) * (image.width / patch);
    const double numbers = static_cast<double>(image.channels * patch * patch);
    Weights weights(device);
    class_token_ = weights.filled("class_token", {1, 1, options.width}, 0);
    patch_weight_ = weights.normal("conv_proj.weight", {options.width, image.channels, patch, patch},
                                   1 / std::sqrt(numbers));
    patch_bias_ = weights.filled("conv_proj.bias", {options.width}, 0);
    positions_ = weights.normal("encoder.pos_embedding", {1, patches + 1, options.width}, kDeviation);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const std::string block = fmt::format("encoder.layers.encoder_layer_{}.", i);
      blocks_.emplace_back(weights, options,
                           TransformerBlock::Names{.norm_1 = block + "ln_1",
                                                   .attention_in = block + "self_attention.in_proj_weight",
                                                   .attention_out = block + "self_attention.out_proj.weight",
                                                   .norm_2 = block + "ln_2",
                                                   .mlp_in = block + "mlp.0.weight",
                                                   .mlp_out = block + "mlp.3.weight"});
    }
    norm_.emplace(weights, "encoder.ln", options.width, options.norm_epsilon);
    head_.emplace(weights, "heads.head.weight", options.width, classes, kDeviation);
    parameters_ = weights.all();
  }

  at::Tensor forward(Inputs inputs) override {
    const at::Tensor& images = inputs[0];
    const std::int64_t samples = images.size(0), channels = images.size(1);
    const std::int64_t down = images.size(2) / patch_, across = images.size(3) / patch_;
    // Convolving in steps of the kernel's size is a linear layer of the pieces.
    const at::Tensor pieces = images.view({samples, channels, down, patch_, across, patch_})
                                  .permute({0, 2, 4, 1, 3, 5})
                                  .reshape({samples * down * across, channels * patch_ * patch_});
    const std::int64_t width = class_token_.size(2);
    at::Tensor rows = at::cat(
        {class_token_.expand({samples, 1, width}),
         at::addmm(patch_bias_, pieces, patch_weight_.flatten(1).t()).view({samples, down * across, width})},
        1);
    rows = drop((rows + positions_).flatten(0, 1), dropout_, training_);
    for (const TransformerBlock& block : blocks_) rows = block.forward(rows, samples, {}, training_);
    const at::Tensor classified = rows.view({samples, 1 + down * across, width}).select(1, 0);
    return (*head_)((*norm_)(classified));
  }
  void train(bool training) override { training_ = training; }
  Draws draws() const override { return draws_if(dropout_ > 0); }

 private:
  double dropout_;
  std::int64_t patch_;
  bool training_ = true;
  at::Tensor class_token_, patch_weight_, patch_bias_, positions_;
  std::vector<TransformerBlock> blocks_;
  std::optional<LayerNorm> norm_;
  std::optional<Linear> head_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_vit(const BuiltIn& asked) {
  const ModelOptions& options = asked.options;
  W5XDE_TRY(const Image image, image_of(options, 1));
  // A patch that fits, of the usual size or less.
  std::int64_t fits = std::gcd(std::gcd(image.height, image.width), std::int64_t{16});
  if (fits > 4 && std::min(image.height, image.width) < 64) fits = 4;
  const std::string instead = fmt::format("vit:{},6,4,128", fits);
  W5XDE_TRY(const Settings settings, read_settings(asked, 4, instead));
  const std::int64_t patch = settings.sizes[0], layers = settings.sizes[1], heads = settings.sizes[2],
                     width = settings.sizes[3];
  if (image.height % patch != 0 || image.width % patch != 0) {
    return invalid(
        fmt::format("'{}' cuts images into pieces of {} by {}, which do not fit images of {} by {}; type "
                    "vit:{},{},{},{}",
                    options.model, patch, patch, image.height, image.width, fits, layers, heads, width));
  }
  if (width % heads != 0) {
    return invalid(fmt::format("'{}': a width of {} is no multiple of {} heads; type vit:{},{},{},{}",
                               options.model, width, heads, patch, layers, heads,
                               (width / heads + 1) * heads));
  }
  if (layers > kLayersMax) {
    return overloaded(
        fmt::format("'{}': {} layers are the most here; type {}", options.model, kLayersMax, instead));
  }
  // torchvision's epsilon.
  const TransformerOptions transformer{
      .layers = layers, .heads = heads, .width = width, .dropout = settings.dropout, .norm_epsilon = 1e-6};
  const double pixels = static_cast<double>(image.height) * static_cast<double>(image.width);
  const double area = static_cast<double>(patch) * static_cast<double>(patch);
  const double rows = static_cast<double>(image.channels) * area + pixels / area + options.classes;
  W5XDE_CHECK(check_floats(options, transformer.floats() + rows * static_cast<double>(width)));
  return std::unique_ptr<Model>(std::make_unique<VisionTransformer>(
      transformer, image, patch, std::int64_t{options.classes}, asked.device));
}

}  // namespace w5xde::torch_engine
