#include "forecast/advice.h"

#include <algorithm>

namespace w5xde {

namespace {

constexpr GradientChoice kNone, kInt8{{.kind = GradientKind::int8}};
constexpr double kSparseOneOf = 100;  // numbers, one of which travels
// Above this a sparse codec has no fewer bytes than int8.
constexpr double kSparseDensityMax = 0.18;
constexpr double kWorthPooling = 1 + kSmallPart;
// The most that is tried of a change.
constexpr std::uint32_t kStepFactorMax = 64, kLinkFactorMax = 1024, kStepSlotsMax = 8192;

struct Way {
  Mode mode;
  GradientChoice gradient_codec, parameter_codec;
};

GradientChoice sparse(double density) {
  return {{.kind = GradientKind::topk, .density = density}};
}

// async is last: there the result depends on who was quicker when, and on gradients of versions that are
// gone.
std::vector<Way> ways_of(const Situation& situation) {
  const GradientChoice up = sparse(1 / kSparseOneOf);
  std::vector<Way> ways = {{Mode::sync, kNone, kNone},
                           {Mode::sync, kInt8, kNone},
                           {Mode::sync, kInt8, kInt8},
                           {Mode::sync, up, kInt8}};
  // All that the nodes' sparse contributions change must go down, or the parameters that nodes compute with
  // lag behind. That is only little where the optimizer does not spread it.
  const OptimizerOptions& optimizer = situation.config.optimizer;
  const bool spread = optimizer.kind != OptimizerOptions::Kind::sgd || optimizer.momentum > 0;
  const double density = situation.nodes / kSparseOneOf;
  if (!spread && density <= kSparseDensityMax) ways.push_back({Mode::sync, up, sparse(density)});
  ways.push_back({Mode::async, kNone, kNone});
  ways.push_back({Mode::async, kInt8, kInt8});
  return ways;
}

double gain_of(const Situation& situation) {
  return predict(situation).batches_per_second / situation.alone_batches_per_second();
}

Situation changed(const Situation& situation, Remedy::Kind kind, std::uint32_t factor) {
  Situation other = situation;
  other.config.mode = Mode::sync;
  other.config.transport.gradient_codec = other.config.transport.parameter_codec = kNone;
  switch (kind) {
    case Remedy::Kind::more_slots:
      other.config.slots *= factor;
      break;
    case Remedy::Kind::larger_batch:
      other.config.batch *= factor;
      other.slot_seconds *= factor;
      break;
    case Remedy::Kind::faster_link:
      other.link.bytes_per_second *= factor;
      break;
  }
  return other;
}

Remedy remedy_of(const Situation& situation, Remedy::Kind kind) {
  std::uint32_t factor_max = kind == Remedy::Kind::faster_link ? kLinkFactorMax : kStepFactorMax;
  if (kind == Remedy::Kind::more_slots)
    factor_max = std::clamp(kStepSlotsMax / situation.config.step_slots(), 2u, factor_max);
  Remedy remedy{.kind = kind};
  while (remedy.gain < kWorthPooling && remedy.factor < factor_max) {
    remedy.factor *= 2;
    remedy.gain = gain_of(changed(situation, kind, remedy.factor));
  }
  return remedy;
}

}  // namespace

bool Advice::worth_pooling() const {
  return gain >= kWorthPooling;
}

Advice advise(const Situation& situation) {
  Advice advice;
  for (const Way& way : ways_of(situation)) {
    Situation other = situation;
    other.config.mode = way.mode;
    other.config.transport.gradient_codec = way.gradient_codec;
    other.config.transport.parameter_codec = way.parameter_codec;
    advice.choices.push_back({way.mode, way.gradient_codec, way.parameter_codec, predict(other)});
  }
  const auto rate = [](const Advice::Choice& choice) { return choice.prediction.batches_per_second; };
  const double as_good = 1 - kSmallPart;
  const auto fastest = std::ranges::max_element(advice.choices, {}, rate);
  auto taken = std::ranges::find_if(
      advice.choices, [&](const Advice::Choice& choice) { return rate(choice) >= as_good * rate(*fastest); });
  if (rate(advice.choices.front()) >= as_good * rate(*taken)) taken = advice.choices.begin();
  advice.fastest = static_cast<std::size_t>(fastest - advice.choices.begin());
  advice.recommended = static_cast<std::size_t>(taken - advice.choices.begin());
  Situation larger = situation;
  larger.config.slots *= Advice::kMoreSlots;
  advice.with_more_slots = predict(larger);
  advice.gain = rate(advice.choice()) / situation.alone_batches_per_second();
  if (situation.one_machine() || advice.worth_pooling()) return advice;
  for (const auto kind : {Remedy::Kind::more_slots, Remedy::Kind::larger_batch, Remedy::Kind::faster_link})
    advice.remedies.push_back(remedy_of(situation, kind));
  return advice;
}

}  // namespace w5xde
