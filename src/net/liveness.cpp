#include "net/liveness.h"

#include <algorithm>

#include "base/errors.h"

namespace w5xde {

namespace {

// Before the first round trip nothing is known of the link.
constexpr Duration kPatienceUnknown = std::chrono::seconds(10);

// However fast the link, the peer's machine may be busy: its scheduler, not its network, sets this.
constexpr Duration kPatienceMin = std::chrono::seconds(2);

// A peer sets this by how late it answers; however late, there is an end.
constexpr Duration kPatienceMax = std::chrono::seconds(60);

// A peer that sends is alive, but one that takes none of our bytes for this long will not take any more.
constexpr Duration kUnreadPatience = std::chrono::seconds(30);

// How many likely-worst round trips (mean and four deviations, as TCP computes them) may be missed.
constexpr int kPatienceRoundTrips = 8;

}  // namespace

Duration Liveness::patience() const {
  if (round_trip_ == Duration::zero()) return kPatienceUnknown;
  return std::clamp(kPatienceRoundTrips * (round_trip_ + 4 * variation_), kPatienceMin, kPatienceMax);
}

bool Liveness::tick(Instant now) {
  // Two intervals late: it was this process that stood still, and the peer's answers may be waiting in the
  // kernel.
  if (const Duration lost = stood_still(now); lost > Duration::zero()) {
    heard_at_ = std::max(heard_at_, std::min(now, heard_at_ + lost));
    progressed_at_ = std::max(progressed_at_, std::min(now, progressed_at_ + lost));
    pinged_at_ = std::min(now, pinged_at_ + lost);
  }
  ticked_at_ = now;
  return !awaited_.has_value();
}

void Liveness::pinged(std::uint64_t token, Instant now) {
  awaited_ = token;
  pinged_at_ = now;
}

void Liveness::ponged(std::uint64_t token, Instant now) {
  if (awaited_ != token) return;
  awaited_.reset();
  const Duration sample = std::max(Duration(1), now - pinged_at_);
  // RFC 6298's estimator, with its gains of 1/8 and 1/4.
  if (round_trip_ == Duration::zero()) {
    round_trip_ = sample;
    variation_ = sample / 2;
    return;
  }
  const Duration error = sample > round_trip_ ? sample - round_trip_ : round_trip_ - sample;
  variation_ += (error - variation_) / 4;
  round_trip_ += (sample - round_trip_) / 8;
}

std::optional<Error> Liveness::verdict(Instant now, bool backlog) const {
  const double round_trip_ms = seconds_of(round_trip_) * 1e3;
  if (backlog) {
    // A ping may itself be waiting behind a large frame, so what counts is whether that frame moves.
    const Duration stuck = now - std::max(progressed_at_, heard_at_);
    const Duration unread = now - progressed_at_;
    if (stuck <= patience() && unread <= std::max(kUnreadPatience, patience())) return std::nullopt;
    return disconnected("took no bytes for {:.1f} s (round trip {:.1f} ms)", seconds_of(unread),
                        round_trip_ms);
  }
  if (!awaited_) return std::nullopt;
  const Duration silence = now - std::max({heard_at_, pinged_at_, progressed_at_});
  if (silence <= patience()) return std::nullopt;
  return disconnected("no answer for {:.1f} s (round trip {:.1f} ms)", seconds_of(silence), round_trip_ms);
}

}  // namespace w5xde
