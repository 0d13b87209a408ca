#include "forecast/advice.h"

#include <algorithm>

namespace w5xde {

namespace {

constexpr double kAsGood = 0.9;  // of the fastest

// async is last: there the result depends on who was quicker when, and on gradients of versions that are
// gone.
struct Way {
  Mode mode;
  const char* gradient_codec;
  const char* parameter_codec;
};
constexpr Way kWays[] = {
    {Mode::sync, "none", "none"},      {Mode::sync, "int8", "none"},           {Mode::sync, "int8", "int8"},
    {Mode::sync, "topk:0.01", "int8"}, {Mode::sync, "topk:0.01", "topk:0.01"}, {Mode::async, "none", "none"},
    {Mode::async, "int8", "int8"},
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
  const auto fastest = std::ranges::max_element(advice.choices, {}, rate);
  auto taken = std::ranges::find_if(
      advice.choices, [&](const Advice::Choice& choice) { return rate(choice) >= kAsGood * rate(*fastest); });
  if (rate(advice.choices.front()) >= kAsGood * rate(*taken)) taken = advice.choices.begin();
  advice.fastest = static_cast<std::size_t>(fastest - advice.choices.begin());
  advice.recommended = static_cast<std::size_t>(taken - advice.choices.begin());
  Situation larger = situation;
  larger.config.slots *= Advice::kMoreSlots;
  advice.with_more_slots = predict(larger);
  return advice;
}

}  // namespace w5xde
