#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "w5xde/result.h"

namespace w5xde {

// Decides when a peer is gone, from measured round trips and without a timeout to tune. Pure: every call
// brings the time.
//
//   silence    how long nothing has come from the peer although something was due: a pong, or room for bytes
//   patience   how much silence is too much: several times the longest round trip that is likely here
//
// A peer whose kernel lives but whose process is stopped answers no ping; one whose cable is cut takes no
// bytes. Both are silent. A process that was stopped itself (SIGSTOP, a laptop's lid) finds its own clock
// jumped, and forgives.
class Liveness {
 public:
  explicit Liveness(Instant now) : heard_at_(now), progressed_at_(now), ticked_at_(now) {}

  // Bytes came from the peer.
  void heard(Instant now) { heard_at_ = now; }
  // The peer's side took bytes of ours.
  void progressed(Instant now) { progressed_at_ = now; }

  // How long this process stood still since the last tick; zero when it did not.
  Duration stood_still(Instant now) const {
    return now - ticked_at_ > 2 * interval() ? now - ticked_at_ : Duration::zero();
  }

  // Call every interval(). Says whether a ping should go out now.
  bool tick(Instant now);
  // The ping with this token was handed over for sending.
  void pinged(std::uint64_t token, Instant now);
  void ponged(std::uint64_t token, Instant now);

  // Why the peer is considered dead, if it is. `backlog`: bytes of ours are waiting for it.
  std::optional<Error> verdict(Instant now, bool backlog) const;

  Duration interval() const { return patience() / 4; }
  Duration patience() const;
  // Smoothed; zero while there was none.
  Duration round_trip() const { return round_trip_; }

 private:
  Instant heard_at_;
  Instant progressed_at_;
  Instant ticked_at_;
  std::optional<std::uint64_t> awaited_;  // the token of the ping that is not answered yet
  Instant pinged_at_;
  Duration round_trip_ = Duration::zero();
  Duration variation_ = Duration::zero();
};

}  // namespace w5xde
