#include "net/rate_meter.h"

namespace w5xde {

namespace {

// One estimate per so much movement: shorter ones measure the socket buffer, not the link.
constexpr Duration kWindow = std::chrono::milliseconds(20);
constexpr double kGain = 0.25;

}  // namespace

void RateMeter::start(Instant now) {
  if (busy_) return;
  busy_ = true;
  since_ = now;
}

void RateMeter::moved(std::uint64_t bytes, Instant now) {
  if (!busy_) return;
  bytes_ += bytes;
  settle(now);
}

void RateMeter::stop(Instant now) {
  if (!busy_) return;
  settle(now);
  busy_ = false;
}

void RateMeter::settle(Instant now) {
  busy_time_ += now - since_;
  since_ = now;
  if (busy_time_ < kWindow) return;
  const double measured = static_cast<double>(bytes_) / seconds_of(busy_time_);
  rate_ = rate_ == 0 ? measured : rate_ + kGain * (measured - rate_);
  busy_time_ = Duration::zero();
  bytes_ = 0;
}

}  // namespace w5xde
