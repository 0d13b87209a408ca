#include "models/transformer.h"

#include <cmath>

namespace w5xde::torch_engine {

at::Tensor Weights::add(const std::string& name, const at::Tensor& values) {
  at::Tensor weight = values.to(device_);
  weight.requires_grad_();
  all_.push_back({name, weight});
  return weight;
}

at::Tensor Weights::normal(const std::string& name, at::IntArrayRef dims, double deviation) {
  return add(name, at::empty(dims).normal_(0, deviation));
}

at::Tensor Weights::filled(const std::string& name, at::IntArrayRef dims, double value) {
  return add(name, at::full(dims, value));
}

Linear::Linear(Weights& weights, const std::string& name, std::int64_t inputs, std::int64_t outputs,
               double deviation)
    : weight(weights.normal(name, {outputs, inputs}, deviation)),
      bias(weights.filled(name.substr(0, name.size() - 6) + "bias", {outputs}, 0)) {}

at::Tensor Linear::operator()(const at::Tensor& rows) const {
  return at::addmm(bias, rows, weight.t());
}

LayerNorm::LayerNorm(Weights& weights, const std::string& name, std::int64_t width, double norm_epsilon)
    : weight(weights.filled(name + ".weight", {width}, 1)),
      bias(weights.filled(name + ".bias", {width}, 0)),
      epsilon(norm_epsilon) {}

at::Tensor LayerNorm::operator()(const at::Tensor& rows) const {
  return at::layer_norm(rows, weight.sizes(), weight, bias, epsilon);
}

at::Tensor drop(const at::Tensor& values, double rate, bool training) {
  return rate > 0 && training ? at::dropout(values, rate, true) : values;
}

TransformerBlock::TransformerBlock(Weights& weights, const TransformerOptions& options, const Names& names)
    : heads_(options.heads),
      dropout_(options.dropout),
      norm_1_(weights, names.norm_1, options.width, options.norm_epsilon),
      attention_in_(weights, names.attention_in, options.width, 3 * options.width, kDeviation),
      attention_out_(weights, names.attention_out, options.width, options.width,
                     kDeviation / std::sqrt(2.0 * static_cast<double>(options.layers))),
      norm_2_(weights, names.norm_2, options.width, options.norm_epsilon),
      mlp_in_(weights, names.mlp_in, options.width, 4 * options.width, kDeviation),
      mlp_out_(weights, names.mlp_out, 4 * options.width, options.width,
               kDeviation / std::sqrt(2.0 * static_cast<double>(options.layers))) {}

at::Tensor TransformerBlock::attend(const at::Tensor& rows, std::int64_t samples, const at::Tensor& mask,
                                    bool training) const {
  const std::int64_t tokens = rows.size(0) / samples;
  const std::int64_t width = rows.size(1);
  const std::int64_t of_head = width / heads_;
  // [query, key or value][samples × heads, tokens, of_head]
  const at::Tensor split = attention_in_(rows)
                               .view({samples, tokens, 3, heads_, of_head})
                               .permute({2, 0, 3, 1, 4})
                               .reshape({3, samples * heads_, tokens, of_head});
  const at::Tensor query = split.select(0, 0);
  const at::Tensor key = split.select(0, 1).transpose(1, 2);
  const at::Tensor value = split.select(0, 2);
  const double scale = 1 / std::sqrt(static_cast<double>(of_head));
  const at::Tensor scores =
      mask.defined() ? at::baddbmm(mask, query, key, 1, scale) : at::bmm(query * scale, key);
  const at::Tensor shares = drop(at::softmax(scores, -1), dropout_, training);
  const at::Tensor heads = at::bmm(shares, value)
                               .view({samples, heads_, tokens, of_head})
                               .transpose(1, 2)
                               .reshape({samples * tokens, width});
  return attention_out_(heads);
}

at::Tensor TransformerBlock::forward(const at::Tensor& rows, std::int64_t samples, const at::Tensor& mask,
                                     bool training) const {
  const at::Tensor attended = rows + drop(attend(norm_1_(rows), samples, mask, training), dropout_, training);
  const at::Tensor wide = at::gelu(mlp_in_(norm_2_(attended)));
  return attended + drop(mlp_out_(wide), dropout_, training);
}

}  // namespace w5xde::torch_engine
