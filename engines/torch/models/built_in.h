// What the families of built-in models have in common. Each family is a file of this folder and a line of the
// table in built_in.cpp.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model.h"
#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace w5xde::torch_engine {

// A model that is asked for by name.
struct BuiltIn {
  const ModelOptions& options;
  std::string_view settings;  // of "gpt:4,4,128,128": what is behind the colon
  at::Device device;
};

Result<std::unique_ptr<Model>> make_mlp(const BuiltIn& asked);
Result<std::unique_ptr<Model>> make_lenet(const BuiltIn& asked);
Result<std::unique_ptr<Model>> make_resnet_small(const BuiltIn& asked);
Result<std::unique_ptr<Model>> make_resnet18(const BuiltIn& asked);
Result<std::unique_ptr<Model>> make_vit(const BuiltIn& asked);
Result<std::unique_ptr<Model>> make_gpt(const BuiltIn& asked);
Result<std::unique_ptr<Model>> make_lstm(const BuiltIn& asked);

// "4,4,128,dropout=0.1": sizes, then perhaps a rate of dropout.
struct Settings {
  std::vector<std::int64_t> sizes;  // each from 1 to kSizeMax
  double dropout = 0;
};
// What BlockLayout bounds in the end; here it keeps a product of two sizes from overflowing.
inline constexpr std::int64_t kSizeMax = std::int64_t{1} << 28;
// Layers have names and tensors of their own, which a sum of floats does not show.
inline constexpr std::int64_t kLayersMax = 256;

// `invalid` where there are not `sizes` of them; `instead` is what could be typed.
Result<Settings> read_settings(const BuiltIn& asked, std::size_t sizes, std::string_view instead);

// Before torch allocates them. Biases and the like may be left out of `floats`: they are few. As a double,
// because no product of sizes overflows in it.
Status check_floats(const ModelOptions& options, double floats);

// For models of one input of numbers.
Status check_numbers(const ModelOptions& options);
// For models that give one row of outputs a sample: how many the loss wants.
Result<std::int64_t> outputs_of(const ModelOptions& options);
// For language models: how many tokens a sample has.
Result<std::int64_t> tokens_of(const ModelOptions& options);

std::optional<std::int64_t> parse_size(std::string_view text);

}  // namespace w5xde::torch_engine
