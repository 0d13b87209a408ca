// What computes: an engine turns (model state, a slot's samples, a slot's seed) into the slot's contribution.
// It is a plug-in, a shared library that nodes load at run time, so that a coordinator never carries one.
// This header and those that it includes are all that an engine needs; docs/write_an_engine.md shows one.
//
//   state         every float of a model that training changes: its trainable parameters, then its buffers
//                 (BatchNorm statistics), each group laid out as its BlockLayout says, back to back
//   contribution  as many floats: the gradient of the slot's summed loss, then samples × (buffer after -
//                 buffer before). Divided by the samples of a step, the sum of its contributions is the mean
//                 gradient and the mean change of the buffers. A parameter that the slot's loss does not
//                 depend on has no gradient, which w5xde/no_gradient.h says how to write.
//
// What training does not change (frozen parameters, constant buffers) is in the model itself.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "w5xde/block_layout.h"
#include "w5xde/dtype.h"
#include "w5xde/result.h"
#include "w5xde/sample_field.h"
#include "w5xde/sample_preparation.h"
#include "w5xde/shape.h"

namespace w5xde {

// Part of a run: the same on every node, since any of it may change the bits of a contribution (but device
// and floats_max, which are a node's own).
struct ModelOptions {
  std::string model;  // as --model has it: "mlp:10,20,10", "lenet", …, or the name of a model file
  // "cross-entropy", "bce", "mse", "own": the model computes it from targets, or "auto": what the model and
  // the data ask for.
  std::string loss;
  std::vector<SampleField> inputs;  // 1 … kInputsMax, in the order in which slots have them
  SampleField targets;
  std::uint32_t classes = 0;  // how many the targets number: labels, or a vocabulary; 0: no classes
  // Targets equal to this do not count (cross-entropy).
  std::optional<std::int64_t> ignore_index = {};
  // Done to samples before an engine is given them: a plug-in finds none here, and inputs as they come to it.
  SamplePreparation preparation = {};
  unsigned threads = 1;         // for one slot's arithmetic
  std::string device = "auto";  // auto, cpu, cuda, mps
  // What matrix products and convolutions are computed in: f32, or bf16. State and contributions are f32.
  DType compute = DType::f32;
  // A model of more floats is refused, where that can be known before they are allocated: what a peer names
  // must not size memory.
  std::uint64_t floats_max = UINT64_MAX;
};

struct ModelDescription {
  std::shared_ptr<const BlockLayout> parameters;  // trainable, in the model's order; tied weights once
  std::shared_ptr<const BlockLayout> buffers;
  std::string loss = {};  // ModelOptions::loss, never "auto"

  std::uint64_t floats() const { return parameters->floats() + buffers->floats(); }
};

// Looks at a contiguous (row-major) tensor in somebody else's memory, at any address: it may be unaligned.
struct SampleTensor {
  std::span<const std::byte> bytes;  // shape.elements() * size_of(dtype) of them
  DType dtype = DType::f32;
  Shape shape = {0};
};

// A few tensors in a row, without an allocation.
class SampleInputs {
 public:
  SampleInputs() = default;
  SampleInputs(std::initializer_list<SampleTensor> tensors) {
    for (const SampleTensor& tensor : tensors) push_back(tensor);
  }

  void push_back(const SampleTensor& tensor) {
    assert(size_ < kInputsMax);
    tensors_[size_++] = tensor;
  }
  std::size_t size() const { return size_; }
  const SampleTensor& operator[](std::size_t i) const { return tensors_[i]; }
  const SampleTensor* begin() const { return tensors_.data(); }
  const SampleTensor* end() const { return tensors_.data() + size_; }

 private:
  std::array<SampleTensor, kInputsMax> tensors_;
  std::size_t size_ = 0;
};

// Each tensor is [samples, …]: as ModelOptions describes one sample, with the samples before it. Evaluation
// may bring numbers in another dtype than training: pixels where the data set has f32, or the other way.
struct SlotSamples {
  SampleInputs inputs;
  SampleTensor targets;
};

struct Slot {
  SlotSamples samples;
  std::uint64_t seed = 0;
};

// What is counted exactly beside a contribution's floats.
struct Sums {
  double loss = 0;  // over the samples, added up; of one with several targets it is their mean
  std::uint64_t samples = 0;
};

inline Sums add(const Sums& left, const Sums& right) {
  return {left.loss + right.loss, left.samples + right.samples};
}

struct Evaluation {
  double loss_sum = 0;
  // Targets that are classes and count: one a sample, or several. And how many of them the largest output
  // names.
  std::uint64_t counted = 0;
  std::uint64_t correct = 0;
  std::uint64_t samples = 0;
};

// What a model gives for samples.
struct Outputs {
  Shape shape;                // [samples, …]
  std::vector<float> values;  // row by row
};

// One model on one device. Used by one thread at a time; several engines of a process may be used at the same
// time.
class Engine {
 public:
  virtual ~Engine() = default;

  // "torch 1.13.1 cpu": with the machine's processor, what must be equal for equal bits.
  virtual std::string name() const = 0;
  virtual const ModelDescription& description() const = 0;
  // Whether its arithmetic keeps the machine's processor cores busy; a GPU's does not.
  virtual bool uses_cores() const = 0;

  // The state that a run with this seed begins with. Padding is zero.
  virtual Status initialise(std::uint64_t seed, std::span<float> state) = 0;

  // Sums of earlier slots, each of as many floats as a contribution.
  using Addends = std::span<const float* const>;

  // What a slot contributes, with the addends: `contribution` = addends[n - 1] + (… + (addends[0] + the
  // slot's)), each float rounded in that order. Adding a gradient where it is made saves passes over memory.
  // `contribution` may be one of the addends: read each float of them before it is written. The returned sums
  // are the slot's alone. A pure function of its arguments: every random draw comes from the slot's seed. No
  // other memory may change during the call; between calls it may. After an error `contribution` holds
  // anything.
  virtual Result<Sums> compute(std::span<const float> state, const Slot& slot, Addends addends,
                               std::span<float> contribution) = 0;
  // Alone.
  Result<Sums> compute(std::span<const float> state, const SlotSamples& samples, std::uint64_t seed,
                       std::span<float> contribution) {
    return compute(state, Slot{samples, seed}, {}, contribution);
  }

  // With dropout off and buffers as they are.
  virtual Result<Evaluation> evaluate(std::span<const float> state, const SlotSamples& samples) = 0;

  // The same without targets. An engine may leave this out.
  virtual Result<Outputs> predict(std::span<const float> /*state*/, const SampleInputs& /*inputs*/) {
    return invalid("engine " + name() + " gives no outputs");
  }
  // Writes the model with this state as a file that the model's own framework reads, in evaluation mode; in
  // it, the parameters with the names in `frozen` are frozen. An engine may leave this out.
  virtual Status save_model(std::span<const float> /*state*/, const std::filesystem::path& /*file*/,
                            std::span<const std::string> /*frozen*/) {
    return invalid("engine " + name() + " writes no models; export the weights: FILE.safetensors");
  }
};

// What a plug-in exports under the names that W5XDE_EXPORT_ENGINE gives: the interface's number, and a
// function that makes an engine. `model_file` holds the model where options.model names a file. Where a model
// by name is trained in part, it holds the parameters that are frozen: a safetensors file, by their names,
// with kFrozenWord in its metadata. Otherwise it is empty. Making an engine starts no thread: processes are
// forked from the one that did.
using MakeEngine = Result<std::unique_ptr<Engine>>(const ModelOptions& options,
                                                   const std::filesystem::path& model_file);

inline constexpr const char* kFrozenWord = "w5xde.frozen";

// Stands for everything above. A plug-in of another number is refused.
inline constexpr std::uint32_t kEngineInterface = 8;

}  // namespace w5xde

// Once in an engine's library, outside of any namespace, with a function that is a MakeEngine. Only the names
// are C's: program and plug-in must be made by compilers that agree about C++ classes.
#define W5XDE_EXPORT_ENGINE(make_engine)                                                          \
  W5XDE_C_NAMES_ONLY                                                                              \
  extern "C" {                                                                                    \
  [[gnu::visibility("default")]] extern const std::uint32_t w5xde_engine_interface;               \
  const std::uint32_t w5xde_engine_interface = w5xde::kEngineInterface;                           \
  [[gnu::visibility("default")]] w5xde::Result<std::unique_ptr<w5xde::Engine>> w5xde_engine_make( \
      const w5xde::ModelOptions& options, const std::filesystem::path& model_file) {              \
    return make_engine(options, model_file);                                                      \
  }                                                                                               \
  }

#if defined(__clang__)
#define W5XDE_C_NAMES_ONLY _Pragma("clang diagnostic ignored \"-Wreturn-type-c-linkage\"")
#else
#define W5XDE_C_NAMES_ONLY
#endif
