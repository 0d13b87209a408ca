// What both test programs of the plug-in do: load it, make an engine, run slots through it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "learn/engine_library.h"

namespace w5xde {

// The plug-in of this build; loaded once.
const EngineLibrary& torch_library();

// "mixed.pt" of the files that testdata/make_models.py made.
std::filesystem::path model_file(const std::string& name);

// A block that a slot could use: aligned, and full of what must be written over.
class Block {
 public:
  explicit Block(std::uint64_t floats);

  std::span<float> values() { return {reinterpret_cast<float*>(memory_->data()), floats_}; }
  std::span<const float> values() const { return {reinterpret_cast<const float*>(memory_->data()), floats_}; }
  std::unique_ptr<AlignedBuffer> release() { return std::move(memory_); }
  bool operator==(const Block& other) const;  // the same bits

 private:
  std::unique_ptr<AlignedBuffer> memory_;
  std::uint64_t floats_;
};

// Random samples that own their memory.
struct Samples {
  Samples(std::int64_t count, const Shape& sample_shape, std::uint32_t classes, std::uint64_t seed);

  SlotSamples slot() const;

  Shape shape;
  std::vector<float> inputs;
  std::vector<std::int64_t> targets;
};

// Of samples with one input of f32. Targets are classes as i64 or, where there are none, f32.
ModelOptions options_of(const std::string& model, const Shape& sample_shape, std::uint32_t classes,
                        const std::string& loss = "cross-entropy", const Shape& target_shape = {});

// An engine, the state that it begins with, and options to make another.
struct EngineOnTest {
  // options.model is a name or, with an end of ".pt", a file.
  explicit EngineOnTest(ModelOptions made_with);
  EngineOnTest(const std::string& model, const Shape& sample_shape, std::uint32_t classes,
               const std::string& loss = "cross-entropy", const Shape& target_shape = {})
      : EngineOnTest(options_of(model, sample_shape, classes, loss, target_shape)) {}

  // Fails the test on an error.
  Block contribution(const SlotSamples& samples, std::uint64_t seed = 1, Sums* sums = nullptr);
  std::span<const float> of(const Block& block, const std::string& name) const;

  ModelOptions options;
  std::unique_ptr<Engine> engine;
  Block state;
};

}  // namespace w5xde
