#include "sim/plain_run.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "coordinator/batches.h"
#include "learn/learner.h"
#include "learn/seeds.h"
#include "support/fake_engine.h"

namespace w5xde {

Status write_first_checkpoint(const std::filesystem::path& path, std::uint64_t seed, Disk& disk) {
  FakeEngine engine;
  const ModelDescription& model = engine.description();
  std::vector<float> state(model.floats());
  W5XDE_CHECK(engine.initialise(seed, state));
  const std::span<const float> all = state;
  const std::vector<NamedBlock> blocks = {
      {"parameters", model.parameters.get(), all.first(model.parameters->floats())},
      {"buffers", model.buffers.get(), all.subspan(model.parameters->floats())}};
  W5XDE_CHECK(disk.create_folder(path.parent_path()));
  return write_checkpoint(path, {.seed = seed}, blocks, disk);
}

std::string plain_hash(const RunConfig& config, const std::shared_ptr<const Dataset>& data,
                       const CheckpointFile& checkpoint) {
  Batches batches(data, {.samples = data->samples(), .batch = config.batch, .seed = config.seed});
  const std::uint64_t slots_total = config.slots_total(batches.sampler().slots_per_epoch());
  const std::uint64_t steps_total = config.steps_total(batches.sampler().slots_per_epoch());
  const auto learner = Learner::from(checkpoint, {},
                                     {.optimizer = config.optimizer,
                                      .schedule = config.schedule_over(steps_total).value(),
                                      .clip_norm = config.clip_norm},
                                     nullptr)
                           .value();
  FakeEngine engine;
  GlobalBatch growing({config.growth, config.batch, config.slots, config.optimizer}, {});
  std::uint32_t full_slots = config.step_slots();
  std::uint64_t next_slot = 0;
  for (std::uint64_t step = 0; step < steps_total; ++step) {
    for (const BatchGrowth& growth : growing.growths()) {
      if (growth.step == step) full_slots = growing.slots_of(growth);
    }
    const auto slots = static_cast<std::uint32_t>(
        slots_total == 0 ? full_slots : std::min<std::uint64_t>(full_slots, slots_total - next_slot));
    learner->set_pace({.schedule_step = step, .factor = growing.rate_factor(full_slots)});
    Reduction reduction(slots, learner->floats(), [&](const HalfSum& left, const HalfSum& right) {
      growing.measure(left, right, learner->parameters()->floats(), nullptr);
    });
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const auto batch = batches.make(next_slot++, 1).value();
      auto buffer = learner->take_buffer();
      const std::span<float> values(reinterpret_cast<float*>(buffer->data()), learner->floats());
      const std::span<const float> state(reinterpret_cast<const float*>(learner->state()->data()),
                                         learner->floats());
      const auto sums =
          engine.compute(state, batch.samples(), slot_seed(step_seed(config.seed, step), slot), values);
      EXPECT_TRUE(reduction.add({slot, 1}, std::move(buffer), *sums, nullptr, learner->spare()).ok());
    }
    Sums sums;
    const auto sum = reduction.take(sums);
    EXPECT_TRUE(learner->apply(*sum, sums.samples, 1));
    if (config.growth.grows()) growing.committed(step);
  }
  return learner->parameters_hash();
}

std::vector<double> sum_of_gradients(const RunConfig& config, const std::shared_ptr<const Dataset>& data) {
  Batches batches(data, {.samples = data->samples(), .batch = config.batch, .seed = config.seed});
  FakeEngine engine({}, FakeEngine::Gradient::constant);
  const std::uint64_t floats = engine.description().floats();
  const std::vector<float> state(floats);
  std::vector<double> sum(engine.description().parameters->floats());
  for (std::uint64_t slot = 0; slot < config.steps * config.step_slots(); ++slot) {
    const auto batch = batches.make(slot, 1).value();
    std::vector<float> values(floats);
    const std::uint64_t step = slot / config.step_slots();
    const std::uint64_t seed =
        slot_seed(step_seed(config.seed, step), static_cast<std::uint32_t>(slot % config.step_slots()));
    EXPECT_TRUE(engine.compute(state, batch.samples(), seed, values).ok());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += double{values[i]};
  }
  return sum;
}

}  // namespace w5xde
