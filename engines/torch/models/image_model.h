// Models that classify images.
#pragma once

#include <torch/nn.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "models/built_in.h"

namespace w5xde::torch_engine {

struct Image {
  std::int64_t channels;
  std::int64_t height;
  std::int64_t width;
};

// Of samples that are [height, width] or [channels, height, width] and have classes.
Result<Image> image_of(const ModelOptions& options, std::int64_t side_min);

// A module of torch::nn as a Model: named and initialised as it names and initialises itself.
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
  Draws draws() const override { return draws_if(net_->draws()); }

 private:
  std::shared_ptr<Net> net_;
};

}  // namespace w5xde::torch_engine
