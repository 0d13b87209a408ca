#include <fmt/format.h>
#include <torch/nn.h>

#include "models/built_in.h"

namespace w5xde::torch_engine {

namespace {

namespace nn = torch::nn;

// Embedding, LSTM, linear layer: what comes next after each token, from that token and those before it.
struct LstmNet : nn::Module {
  LstmNet(std::int64_t layers, std::int64_t width, std::int64_t vocabulary) {
    embedding = register_module("embedding", nn::Embedding(vocabulary, width));
    lstm =
        register_module("lstm", nn::LSTM(nn::LSTMOptions(width, width).num_layers(layers).batch_first(true)));
    linear = register_module("linear", nn::Linear(width, vocabulary));
  }

  nn::Embedding embedding{nullptr};
  nn::LSTM lstm{nullptr};
  nn::Linear linear{nullptr};
};

class Lstm : public Model {
 public:
  Lstm(std::int64_t layers, std::int64_t width, std::int64_t vocabulary, std::int64_t tokens,
       at::Device device)
      : net_(layers, width, vocabulary) {
    net_.to(device);
    input_dims_ = {{tokens}};
    for (const auto& item : net_.named_parameters()) parameters_.push_back({item.key(), item.value()});
  }

  std::uint64_t vocabulary() const override {
    return static_cast<std::uint64_t>(net_.embedding->weight.size(0));
  }
  at::Tensor forward(Inputs inputs) override {
    return net_.linear->forward(std::get<0>(net_.lstm->forward(net_.embedding->forward(inputs[0]))));
  }
  void train(bool training) override { net_.train(training); }
  Draws draws() const override { return Draws::never; }

 private:
  LstmNet net_;
};

}  // namespace

Result<std::unique_ptr<Model>> make_lstm(const BuiltIn& asked) {
  const ModelOptions& options = asked.options;
  W5XDE_TRY(const std::int64_t tokens, tokens_of(options));
  W5XDE_TRY(const Settings settings, read_settings(asked, 2, "lstm:2,256"));
  const std::int64_t layers = settings.sizes[0], width = settings.sizes[1];
  if (settings.dropout > 0)
    return invalid(fmt::format("'{}': lstm has no dropout; type lstm:{},{}", options.model, layers, width));
  if (layers > kLayersMax) {
    return overloaded(
        fmt::format("'{}': {} layers are the most here; type lstm:2,256", options.model, kLayersMax));
  }
  const auto wide = static_cast<double>(width);
  W5XDE_CHECK(
      check_floats(options, 8.0 * static_cast<double>(layers) * wide * wide + 2.0 * options.classes * wide));
  return std::unique_ptr<Model>(std::make_unique<Lstm>(layers, width, options.classes, tokens, asked.device));
}

}  // namespace w5xde::torch_engine
