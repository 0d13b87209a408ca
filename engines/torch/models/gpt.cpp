#include <fmt/format.h>

#include <limits>
#include <optional>

#include "models/built_in.h"
#include "models/transformer.h"

namespace w5xde::torch_engine {

namespace {

// Scores are [context, context] for every head.
constexpr std::int64_t kContextMax = 4096;

// A decoder: what comes next after each token, from that token and those before it. Named as GPT-2 and
// nanoGPT name theirs; the output layer is the embedding of tokens, transposed.
class Gpt : public Model {
 public:
  Gpt(const TransformerOptions& options, std::int64_t vocabulary, std::int64_t context, at::Device device)
      : dropout_(options.dropout) {
    input_dims_ = {{context}};
    Weights weights(device);
    tokens_ = weights.normal("transformer.wte.weight", {vocabulary, options.width}, kDeviation);
    positions_ = weights.normal("transformer.wpe.weight", {context, options.width}, kDeviation);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const std::string block = fmt::format("transformer.h.{}.", i);
      blocks_.emplace_back(weights, options,
                           TransformerBlock::Names{.norm_1 = block + "ln_1",
                                                   .attention_in = block + "attn.c_attn.weight",
                                                   .attention_out = block + "attn.c_proj.weight",
                                                   .norm_2 = block + "ln_2",
                                                   .mlp_in = block + "mlp.c_fc.weight",
                                                   .mlp_out = block + "mlp.c_proj.weight"});
    }
    norm_.emplace(weights, "transformer.ln_f", options.width, options.norm_epsilon);
    parameters_ = weights.all();
    mask_ = at::full({context, context}, -std::numeric_limits<float>::infinity(),
                     at::TensorOptions().device(device))
                .triu(1);
  }

  std::uint64_t vocabulary() const override { return static_cast<std::uint64_t>(tokens_.size(0)); }
  at::Tensor forward(Inputs inputs) override {
    const std::int64_t samples = inputs[0].size(0);
    at::Tensor rows = (at::embedding(tokens_, inputs[0]) + positions_).flatten(0, 1);
    rows = drop(rows, dropout_, training_);
    for (const TransformerBlock& block : blocks_) rows = block.forward(rows, samples, mask_, training_);
    return at::mm((*norm_)(rows), tokens_.t()).view({samples, positions_.size(0), tokens_.size(0)});
  }
  void train(bool training) override { training_ = training; }
  Draws draws() const override { return draws_if(dropout_ > 0); }

 private:
  double dropout_;
  bool training_ = true;
  at::Tensor tokens_, positions_;
  std::vector<TransformerBlock> blocks_;
  std::optional<LayerNorm> norm_;
  at::Tensor mask_;  // minus infinity where a token would look at a later one
};

}  // namespace

Result<std::unique_ptr<Model>> make_gpt(const BuiltIn& asked) {
  const ModelOptions& options = asked.options;
  W5XDE_TRY(const std::int64_t tokens, tokens_of(options));
  const std::string instead = fmt::format("gpt:4,4,128,{}", tokens);
  W5XDE_TRY(const Settings settings, read_settings(asked, 4, instead));
  const std::int64_t layers = settings.sizes[0], heads = settings.sizes[1], width = settings.sizes[2],
                     context = settings.sizes[3];
  if (layers > kLayersMax || context > kContextMax) {
    return overloaded(fmt::format("'{}': {} layers and a context of {} tokens are the most here; type {}",
                                  options.model, kLayersMax, kContextMax, instead));
  }
  if (width % heads != 0) {
    return invalid(fmt::format("'{}': a width of {} is no multiple of {} heads; type gpt:{},{},{},{}",
                               options.model, width, heads, layers, heads, (width / heads + 1) * heads,
                               context));
  }
  if (context != tokens) {
    return invalid(fmt::format("'{}' does not fit samples of {} tokens; type gpt:{},{},{},{}", options.model,
                               tokens, layers, heads, width, tokens));
  }
  const TransformerOptions transformer{
      .layers = layers, .heads = heads, .width = width, .dropout = settings.dropout};
  const std::int64_t vocabulary = options.classes;
  W5XDE_CHECK(check_floats(options, transformer.floats() + static_cast<double>(vocabulary + context) *
                                                               static_cast<double>(width)));
  return std::unique_ptr<Model>(std::make_unique<Gpt>(transformer, vocabulary, context, asked.device));
}

}  // namespace w5xde::torch_engine
