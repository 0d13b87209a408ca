// What the engine asks of a model, built in or read from a TorchScript file.
#pragma once

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "drawing.h"
#include "tensor/safetensors.h"
#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace w5xde::torch_engine {

// What the parameters of a model, or its buffers, may come to: a block travels in one frame.
inline constexpr std::uint64_t kFloatsMax = Limits{}.payload_bytes_max / sizeof(float);

struct ModelTensor {
  std::string name;
  at::Tensor tensor;
};

class Model {
 public:
  virtual ~Model() = default;

  // How forward() wants one sample of each input; an input past the end is taken as the data has it.
  using Dims = std::vector<std::int64_t>;
  const std::vector<Dims>& input_dims() const { return input_dims_; }
  // Ids of the inputs are 0 … vocabulary() - 1; 0: the model does not say.
  virtual std::uint64_t vocabulary() const { return 0; }
  // The leaves that training changes, each once, in the model's order.
  const std::vector<ModelTensor>& parameters() const { return parameters_; }
  // f32 tensors, and i64 scalars, that forward() may change in training.
  const std::vector<ModelTensor>& buffers() const { return buffers_; }

  // Takes the parameters of these names out of parameters(): they get these values, and keep them.
  Status freeze(std::span<const NamedTensor> values);

  // Tensors of [samples, …], in the order of ModelOptions::inputs: numbers as f32, ids as i64, flags as bool.
  using Inputs = std::span<const at::Tensor>;
  // To outputs, or to the loss where the model reckons its own from targets.
  virtual at::Tensor forward(Inputs inputs) = 0;
  virtual at::Tensor own_loss(Inputs inputs, const at::Tensor& targets);
  virtual void train(bool training) = 0;
  // Whether forward() in training is known to draw random numbers. What is not known is found out by
  // watching.
  virtual Draws draws() const = 0;

  // Writes the file that it could have been read from, with what its tensors hold now.
  virtual void save(const std::filesystem::path& file) const;

  // A model may put other tensors in the place of its buffers: what buffer `i` is after forward(), and
  // putting buffers()[i] back before the next.
  virtual at::Tensor buffer_now(std::size_t i) const { return buffers_[i].tensor; }
  virtual void bind_buffers() {}

  // Everything that forward() must not change, by name, each with a hash of what it is now: parameters,
  // frozen ones too, and whatever else the model could remember that is not in buffers(). Empty for a model
  // that is known to change nothing. Reads all of the model: for now and then only.
  using Fingerprints = std::vector<std::pair<std::string, std::uint64_t>>;
  virtual Fingerprints must_not_change() const { return {}; }

 protected:
  std::vector<Dims> input_dims_;
  std::vector<ModelTensor> parameters_;
  std::vector<ModelTensor> buffers_;
};

// "mlp:10,20,10", "gpt:4,4,128,128" and so on (models/built_in.h); initialised as PyTorch does, from the
// default generator.
Result<std::unique_ptr<Model>> make_built_in(const ModelOptions& options, at::Device device);

// With the values of the file. A loss that is "auto" becomes what forward() asks for.
Result<std::unique_ptr<Model>> load_scripted(ModelOptions& options, const std::filesystem::path& file,
                                             at::Device device);

// Either of them. A file holds a TorchScript model, or the parameters of a model by name that are frozen.
struct MadeModel {
  std::unique_ptr<Model> model;
  bool scripted = false;
};
Result<MadeModel> make_model(ModelOptions& options, const std::filesystem::path& file, at::Device device);

// What a foreign exception says, in one line.
std::string first_line(const std::exception& thrown);
// The same, and below it the lines of the model's own code that led there, if a TorchScript model failed.
std::string with_trace(const std::exception& thrown);

}  // namespace w5xde::torch_engine
