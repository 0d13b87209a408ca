#include "support/sampled_lease.h"

#include "base/random.h"

namespace w5xde {

namespace {

constexpr std::size_t kFeatures = 3;

}  // namespace

SampledLease sampled_lease(std::uint64_t step, SlotBlock block, Work work) {
  SampledLease made{.lease = {.lease_id = 1000 * step + block.first_slot + 1,
                              .step = step,
                              .version = step,
                              .seed = mix(step),
                              .block = block,
                              .work = work}};
  std::vector<std::byte> inputs, targets;
  for (std::uint32_t slot = block.first_slot; slot < block.end(); ++slot) {
    Random random(mix(step, slot));
    made.lease.slot_samples.push_back(2 + slot % 3);
    for (std::uint32_t sample = 0; sample < made.lease.slot_samples.back(); ++sample) {
      for (std::size_t i = 0; i < kFeatures; ++i)
        ByteWriter(inputs).write(static_cast<float>(random.normal()));
      ByteWriter(targets).write(static_cast<std::uint8_t>(random.below(10)));
    }
  }
  const auto samples = static_cast<std::int64_t>(targets.size());
  made.lease.tensors = {{DType::f32, Shape{samples, std::int64_t{kFeatures}}}, {DType::u8, Shape{samples}}};
  made.payload = std::move(inputs);
  made.payload.resize(align_up(made.payload.size(), kPayloadAlignment));
  made.payload.insert(made.payload.end(), targets.begin(), targets.end());
  return made;
}

}  // namespace w5xde
