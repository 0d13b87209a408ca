#include "forecast/advice.h"

#include <algorithm>

namespace w5xde {

namespace {

constexpr GradientChoice kNone, kInt8{{.kind = GradientKind::int8}},
    kSparse{{.kind = GradientKind::topk, .density = 0.01}};

struct Way {
  Mode mode;
  GradientChoice gradient_codec, parameter_codec;
};
// async is last: there the result depends on who was quicker when, and on gradients of versions that are
// gone.
constexpr Way kWays[] = {
    {Mode::sync, kNone, kNone},   {Mode::sync, kInt8, kNone},     {Mode::sync, kInt8, kInt8},
    {Mode::sync, kSparse, kInt8}, {Mode::sync, kSparse, kSparse}, {Mode::async, kNone, kNone},
    {Mode::async, kInt8, kInt8},
};

}  // namespace

Advice advise(const Situation& situation) {
  Advice advice;
  for (const Way& way : kWays) {
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
  return advice;
}

}  // namespace w5xde
