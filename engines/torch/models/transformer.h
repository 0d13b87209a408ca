// What the transformers (gpt, vit) are made of.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model.h"

namespace w5xde::torch_engine {

// Parameters in the order in which they are made, each with a name.
class Weights {
 public:
  explicit Weights(at::Device device) : device_(device) {}

  // Drawn from the default generator: normal, with mean 0.
  at::Tensor normal(const std::string& name, at::IntArrayRef dims, double deviation);
  at::Tensor filled(const std::string& name, at::IntArrayRef dims, double value);

  const std::vector<ModelTensor>& all() const { return all_; }

 private:
  at::Tensor add(const std::string& name, const at::Tensor& values);

  at::Device device_;
  std::vector<ModelTensor> all_;
};

// A weight and a bias. Values are rows: [rows, inputs] to [rows, outputs].
struct Linear {
  // `name` is the weight's and ends with "weight"; the bias, which begins as zero, is named alike.
  Linear(Weights& weights, const std::string& name, std::int64_t inputs, std::int64_t outputs,
         double deviation);
  at::Tensor operator()(const at::Tensor& rows) const;

  at::Tensor weight, bias;
};

struct LayerNorm {
  // `name` without ".weight" and ".bias".
  LayerNorm(Weights& weights, const std::string& name, std::int64_t width, double epsilon);
  at::Tensor operator()(const at::Tensor& rows) const;

  at::Tensor weight, bias;
  double epsilon;
};

struct TransformerOptions {
  std::int64_t layers = 1;
  std::int64_t heads = 1;
  std::int64_t width = 1;  // a multiple of heads
  double dropout = 0;
  double norm_epsilon = 1e-5;

  // Of the large weights of its blocks.
  double floats() const {
    return 12.0 * static_cast<double>(layers) * static_cast<double>(width) * static_cast<double>(width);
  }
};

// The usual deviation of a transformer's first weights. What a block adds to its input is scaled down by the
// number of blocks that do so, so that deep ones begin no louder than shallow ones.
inline constexpr double kDeviation = 0.02;

// x + attention(norm(x)), then x + mlp(norm(x)), where the mlp is four times as wide inside and has a GELU.
class TransformerBlock {
 public:
  // Of the norms without ".weight"; of the others the weight's.
  struct Names {
    std::string norm_1, attention_in, attention_out, norm_2, mlp_in, mlp_out;
  };

  TransformerBlock(Weights& weights, const TransformerOptions& options, const Names& names);

  // `rows` are [samples × tokens, width]. Where `mask` is defined, it is added to each head's
  // [tokens, tokens] scores. Dropout acts when `training`.
  at::Tensor forward(const at::Tensor& rows, std::int64_t samples, const at::Tensor& mask,
                     bool training) const;

 private:
  at::Tensor attend(const at::Tensor& rows, std::int64_t samples, const at::Tensor& mask,
                    bool training) const;

  std::int64_t heads_;
  double dropout_;
  LayerNorm norm_1_;
  Linear attention_in_, attention_out_;
  LayerNorm norm_2_;
  Linear mlp_in_, mlp_out_;
};

// Draws nothing for a rate of 0.
at::Tensor drop(const at::Tensor& values, double rate, bool training);

}  // namespace w5xde::torch_engine
