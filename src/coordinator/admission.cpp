#include "coordinator/admission.h"

#include <fmt/format.h>

#include <utility>

#include "base/bytes.h"

namespace w5xde {

namespace {

// How long a peer that is not ready keeps its place: it says hello at once; a node then may have a large
// model to receive and to load; an observer asks for the status. These are seconds in which this process ran:
// a timer that fires late, because the process was busy or stopped, counts as one.
constexpr std::uint64_t kHelloSeconds = 5;
constexpr std::uint64_t kProofSeconds = 5;
constexpr std::uint64_t kReadySeconds = 600;
constexpr std::uint64_t kModelBytesPerSecondMin = 64 * kKiB;
constexpr std::uint64_t kObserverSeconds = 60;

}  // namespace

void Admission::advance(Stage stage) {
  stage_ = stage;
  idle_seconds_ = 0;
}

void Admission::greet(Hello hello) {
  hello_ = std::move(hello);
  advance(Stage::greeted);
}

void Admission::let_in(Role role) {
  role_ = role;
  advance(Stage::admitted);
}

void Admission::become_ready(Ready about) {
  about_ = std::move(about);
  advance(Stage::ready);
}

bool Admission::take_model() {
  return stage_ == Stage::offered && !std::exchange(model_taken_, true);
}

std::uint64_t Admission::seconds_allowed(std::uint64_t model_bytes) const {
  if (stage_ == Stage::silent) return kHelloSeconds;
  // It waits for us: it is looked up in the list, or the run's data is still being opened.
  if (stage_ == Stage::greeted) return has_asked() ? UINT64_MAX : kProofSeconds;
  if (!is_node()) return kObserverSeconds;
  if (stage_ == Stage::admitted) return UINT64_MAX;
  return kReadySeconds + model_bytes / kModelBytesPerSecondMin;
}

bool Admission::idle_too_long(std::uint64_t model_bytes) {
  return stage_ != Stage::ready && ++idle_seconds_ >= seconds_allowed(model_bytes);
}

std::string Admission::reason() const {
  return fmt::format("no {} for {} s",
                     stage_ == Stage::silent    ? "hello"
                     : stage_ == Stage::greeted ? "proof of an invitation"
                     : is_node()                ? "ready"
                                                : "question",
                     idle_seconds_);
}

}  // namespace w5xde
