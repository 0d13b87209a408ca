#include "run/run_config.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"

namespace w5xde {

Status RunConfig::check() const {
  if (model.empty()) return invalid("no model; say --model mlp:784,128,10, lenet, resnet-small or FILE.pt");
  if (data.empty())
    return invalid("no data; say --data idx:FOLDER, npy:X,Y, safetensors:FILE, text:FILE or synthetic");
  if (batch == 0) return invalid("--batch 0: a slot needs a sample at least");
  if (slots == 0 || accumulate == 0) return invalid("--slots and --accumulate begin at 1");
  if (std::uint64_t{slots} * accumulate > kStepSlotsMax) {
    return invalid("{} slots a step; at most {}", std::uint64_t{slots} * accumulate, kStepSlotsMax);
  }
  if (!(epochs >= 0) || !(seconds >= 0) || !(clip_norm >= 0) || !(checkpoint_seconds > 0)) {
    return invalid(
        "--epochs, --seconds and --clip-norm must not be negative, --checkpoint-seconds must be more than 0");
  }
  if (!(target_accuracy >= 0 && target_accuracy <= 1))
    return invalid("--target-accuracy is a part of 1, such as 0.85");
  W5XDE_CHECK(growth.check());
  if (growth.grows()) W5XDE_CHECK(check_growth());
  if (threads == 0) return invalid("--threads begins at 1");
  if (keep == 0) return invalid("--keep begins at 1: a run without a checkpoint cannot be resumed");
  if (max_staleness == 0) return invalid("--max-staleness begins at 1");
  W5XDE_CHECK(optimizer.check());
  W5XDE_CHECK(transport.check());
  if (schedule.course == Schedule::Course::cosine && steps == 0 && epochs == 0 && seconds > 0) {
    return invalid("a cosine schedule needs to know its end; say --steps or --epochs as well");
  }
  return {};
}

// The noise scale is measured in gradients that no codec has changed from step to step.
Status RunConfig::check_growth() const {
  if (mode != Mode::sync)
    return invalid("--global-batch auto needs --mode sync: async has no steps to enlarge");
  if (step_slots() < 2)
    return invalid("--global-batch auto compares the halves of a step: it needs --slots 2 or more");
  const std::uint64_t first = std::uint64_t{batch} * step_slots();
  if (growth.samples_max > 0 && growth.samples_max < first) {
    return invalid(
        "--global-batch-max {} is less than batch × slots: {} samples; make it more, or those less",
        growth.samples_max, first);
  }
  const GradientChoice& codec = transport.gradient_codec;
  if (codec.automatic || !codec.codec.stateless()) {
    return invalid(
        "--global-batch auto cannot measure gradients that --gradient-codec {} holds back parts of; "
        "use none, fp16 or bf16",
        to_string(codec));
  }
  return {};
}

std::uint64_t RunConfig::slots_total(std::uint64_t slots_per_epoch) const {
  std::uint64_t total = 0;
  const auto end = [&](std::uint64_t slots_at_end) {
    total = total == 0 ? slots_at_end : std::min(total, slots_at_end);
  };
  if (steps > 0 && !growth.grows()) end(steps * step_slots());
  if (epochs > 0) end(static_cast<std::uint64_t>(std::ceil(epochs * static_cast<double>(slots_per_epoch))));
  if (total == 0 && seconds == 0 && steps == 0) end(slots_per_epoch);
  return total;
}

std::uint64_t RunConfig::steps_total(std::uint64_t slots_per_epoch) const {
  const std::uint64_t slots_at_end = slots_total(slots_per_epoch);
  return slots_at_end == 0 ? steps : (slots_at_end + step_slots() - 1) / step_slots();
}

Result<Schedule> RunConfig::schedule_over(std::uint64_t run_steps) const {
  Schedule made = schedule;
  made.total_steps = run_steps;
  W5XDE_CHECK(made.check());
  return made;
}

}  // namespace w5xde
