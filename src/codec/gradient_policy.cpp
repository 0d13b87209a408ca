#include "codec/gradient_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace w5xde {

namespace {

// How much longer than with the harshest codec a step may take for the sake of a gentler one. A gentler one
// than the present must be better than that, or noise would send us to and fro.
constexpr double kWorthwhile = 1.25, kWorthReturning = 1.1;
// Until it is measured: a pass or two over memory, on either side.
constexpr double kCodingSecondsPerFloat = 1.5e-9;
constexpr double kSmoothing = 0.2;

// A place is a varint of one or two bytes, a value four.
constexpr double kSparseBytes = 5.5;

}  // namespace

GradientPolicy::GradientPolicy(const BlockLayout& layout, double density) {
  const auto floats = static_cast<double>(layout.floats());
  const double coding_seconds = floats * kCodingSecondsPerFloat;
  const GradientCodec int8{.kind = GradientKind::int8};
  candidates_ = {Candidate{.bytes = floats * sizeof(float)},
                 Candidate{.codec = int8,
                           .bytes = static_cast<double>(encoded_bytes_max(int8, layout)),
                           .coding_seconds = coding_seconds}};
  if (density == 0) return;
  candidates_.push_back({.codec = {.kind = GradientKind::topk, .density = density},
                         .bytes = kSparseBytes * density * static_cast<double>(layout.parameters()),
                         .coding_seconds = coding_seconds});
}

void GradientPolicy::measured(const GradientCodec& codec, double seconds) {
  const auto found = std::ranges::find(candidates_, codec, &Candidate::codec);
  if (found != candidates_.end()) found->coding_seconds += kSmoothing * (seconds - found->coding_seconds);
}

const GradientCodec& GradientPolicy::choose(const Conditions& conditions) {
  if (!(conditions.link_bytes_per_second > 0)) return codec();
  for (Candidate& candidate : candidates_) {
    candidate.step_seconds = conditions.computing_seconds + candidate.coding_seconds +
                             candidate.bytes / conditions.link_bytes_per_second;
  }
  const double best = std::ranges::min(candidates_, {}, &Candidate::step_seconds).step_seconds;
  std::size_t chosen = 0;
  while (candidates_[chosen].step_seconds > best * (chosen < current_ ? kWorthReturning : kWorthwhile))
    ++chosen;
  current_ = chosen;
  return codec();
}

std::string GradientPolicy::describe() const {
  const Candidate& exact = candidates_[0];
  const Candidate& chosen = candidates_[current_];
  if (exact.step_seconds == 0) return "none (link not measured yet)";
  if (current_ == 0) return fmt::format("none ({:.2g} s a step anyway)", exact.step_seconds);
  return fmt::format("{} (a step in {:.2g} s, not {:.2g})", to_string(chosen.codec), chosen.step_seconds,
                     exact.step_seconds);
}

}  // namespace w5xde
