// What computes: an engine turns (model state, a slot's samples, a slot's seed) into the slot's contribution.
// It is a plug-in, a shared library that nodes load at run time, so that a coordinator never carries one.
//
//   state         every float of a model that training changes: its trainable parameters, then its buffers
//                 (BatchNorm statistics), each group laid out as its BlockLayout says, back to back
//   contribution  as many floats: the gradient of the slot's summed loss, then samples × (buffer after -
//                 buffer before). Divided by the samples of a step, the sum of its contributions is the mean
//                 gradient and the mean change of the buffers. A parameter that the slot's loss does not
//                 depend on has no gradient, which learn/no_gradient.h says how to write.
//
// What training does not change (frozen parameters, constant buffers) is in the model itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "learn/reduction.h"
#include "tensor/parameter_block.h"
#include "tensor/shape.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"

namespace w5xde {

// Part of a run: the same on every node, since any of it may change the bits of a contribution (but device
// and floats_max, which are a node's own).
struct ModelOptions {
  std::string model;  // "mlp:10,20,10", "lenet", "resnet-small", …, or a TorchScript file's name
  // "cross-entropy", "mse", "own": forward(inputs, targets) gives it, or "auto": own where a TorchScript
  // file's forward needs targets, else cross-entropy where there are classes, else mse.
  std::string loss;
  Shape sample_shape;           // of one input, without the batch dimension
  std::uint32_t classes;        // how many, for a model that classifies; 0: targets are not classes
  unsigned threads = 1;         // for one slot's arithmetic
  std::string device = "auto";  // auto, cpu, cuda, mps
  // A model of more floats is refused, where that can be known before they are allocated: what a peer names
  // must not size memory.
  std::uint64_t floats_max = UINT64_MAX;
};

struct ModelDescription {
  std::shared_ptr<const BlockLayout> parameters;  // trainable, in the model's order; tied weights once
  std::shared_ptr<const BlockLayout> buffers;
  std::string loss = {};  // ModelOptions::loss, never "auto"

  std::uint64_t floats() const { return parameters->floats() + buffers->floats(); }
  // What two sides compare before they exchange state.
  std::uint64_t fingerprint() const;
};

struct SlotSamples {
  TensorView inputs;   // [samples, …]: f32, or u8, which stands for value / 255
  TensorView targets;  // [samples] of i64, i32 or u8 classes, or [samples, …] of f32
};

struct Slot {
  SlotSamples samples;
  std::uint64_t seed = 0;
};

struct Evaluation {
  double loss_sum = 0;
  std::uint64_t correct = 0;  // samples whose largest output is their class
  std::uint64_t samples = 0;
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

  // The state that a run with this seed begins with.
  virtual Status initialise(std::uint64_t seed, std::span<float> state) = 0;

  // Sums of earlier slots, each of as many floats as a contribution.
  using Addends = std::span<const float* const>;

  // What one slot contributes, or two (the first's + the second's), with the addends: `contribution` =
  // addends[n - 1] + (… + (addends[0] + the slots')), each float rounded in that order. Adding where the
  // gradients are at hand anyway saves passes over memory. `contribution` may be one of the addends. The
  // returned sums are the slots' alone. A pure function of its arguments: every random draw comes from the
  // slots' seeds. No memory may change during the call; between calls it may.
  virtual Result<Sums> compute(std::span<const float> state, std::span<const Slot> slots, Addends addends,
                               std::span<float> contribution) = 0;
  // One slot alone.
  Result<Sums> compute(std::span<const float> state, const SlotSamples& samples, std::uint64_t seed,
                       std::span<float> contribution) {
    const Slot slot{samples, seed};
    return compute(state, {&slot, 1}, {}, contribution);
  }

  // With dropout off and buffers as they are.
  virtual Result<Evaluation> evaluate(std::span<const float> state, const SlotSamples& samples) = 0;
};

// A plug-in that is loaded. Loading starts no thread, so that a process may fork afterwards.
class EngineLibrary {
 public:
  // `threads` is what the library's own thread pools are told before they come to be; it is the environment
  // of the whole process, so load one library per process.
  static Result<EngineLibrary> load(const std::filesystem::path& path, unsigned threads);

  // `model_file` holds the TorchScript model where options.model names one, and is empty otherwise.
  Result<std::unique_ptr<Engine>> make(const ModelOptions& options,
                                       const std::filesystem::path& model_file) const;

 private:
  using Make = Result<std::unique_ptr<Engine>> (*)(const ModelOptions&, const std::filesystem::path&);
  explicit EngineLibrary(Make function) : make_(function) {}
  Make make_;
};

// What a plug-in exports. The number stands for everything above; a plug-in of another number is refused.
inline constexpr std::uint32_t kEngineInterface = 4;
inline constexpr const char* kEngineInterfaceSymbol = "w5xde_engine_interface";  // std::uint32_t, a variable
inline constexpr const char* kEngineMakeSymbol = "w5xde_engine_make";            // an EngineLibrary::Make

}  // namespace w5xde
