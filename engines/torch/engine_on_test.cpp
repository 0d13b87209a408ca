#include "engine_on_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.h"

namespace w5xde {

const EngineLibrary& torch_library() {
  static const EngineLibrary library = EngineLibrary::load(W5XDE_TORCH_ENGINE, 1).value();
  return library;
}

std::filesystem::path model_file(const std::string& name) {
  return std::filesystem::path(W5XDE_TORCH_MODELS) / name;
}

Block::Block(std::uint64_t floats)
    : memory_(std::make_unique<AlignedBuffer>(floats * sizeof(float))), floats_(floats) {
  std::ranges::fill(values(), 123.0F);
}

bool Block::operator==(const Block& other) const {
  return floats_ == other.floats_ &&
         std::memcmp(memory_->data(), other.memory_->data(), floats_ * sizeof(float)) == 0;
}

Samples::Samples(std::int64_t count, const Shape& sample_shape, std::uint32_t classes, std::uint64_t seed) {
  std::vector<std::int64_t> dims(sample_shape.dims().begin(), sample_shape.dims().end());
  dims.insert(dims.begin(), count);
  shape = Shape::make(dims).value();
  Random random(seed);
  inputs.resize(shape.elements());
  for (float& value : inputs) value = static_cast<float>(2 * random.unit() - 1);
  targets.resize(static_cast<std::size_t>(count));
  for (std::int64_t& target : targets) target = static_cast<std::int64_t>(random.below(classes));
}

SlotSamples Samples::slot() const {
  return {.inputs = {{std::as_bytes(std::span(inputs)), DType::f32, shape}},
          .targets = {std::as_bytes(std::span(targets)), DType::i64, Shape{shape[0]}}};
}

ModelOptions options_of(const std::string& model, const Shape& sample_shape, std::uint32_t classes,
                        const std::string& loss, const Shape& target_shape) {
  return {
      .model = model,
      .loss = loss,
      .inputs = {{.name = "inputs", .shape = sample_shape}},
      .targets = {.name = "targets", .dtype = classes > 0 ? DType::i64 : DType::f32, .shape = target_shape},
      .classes = classes};
}

EngineOnTest::EngineOnTest(ModelOptions made_with) : options(std::move(made_with)), state(0) {
  auto made = torch_library().make(options, options.model.ends_with(".pt") ? model_file(options.model) : "");
  if (!made.ok()) throw std::runtime_error(made.error().to_string());
  engine = std::move(made).value();
  state = Block(engine->description().floats());
  const Status initialised = engine->initialise(42, state.values());
  if (!initialised.ok()) throw std::runtime_error(initialised.error().to_string());
}

Block EngineOnTest::contribution(const SlotSamples& samples, std::uint64_t seed, Sums* sums) {
  Block block(engine->description().floats());
  auto computed = engine->compute(state.values(), samples, seed, block.values());
  if (!computed.ok()) throw std::runtime_error(computed.error().to_string());
  if (sums != nullptr) *sums = *computed;
  return block;
}

std::span<const float> EngineOnTest::of(const Block& block, const std::string& name) const {
  const ModelDescription& description = engine->description();
  if (const auto* entry = description.parameters->find(name)) {
    return block.values().subspan(entry->offset, entry->shape.elements());
  }
  const auto* entry = description.buffers->find(name);
  if (entry == nullptr) throw std::runtime_error("no tensor " + name);
  return block.values().subspan(description.parameters->floats() + entry->offset, entry->shape.elements());
}

}  // namespace w5xde
