// What is known of one node: how fast it computes, what its work costs beside that, and how sure it is.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/clock.h"
#include "lease/ledger.h"
#include "lease/tuning.h"

namespace w5xde {

// What a node says of a lease that it computed.
struct Computing {
  double seconds = 0;
  std::uint32_t lanes = 1;  // that it used
};

struct Pace {
  double seconds_per_slot = 0;  // of computing; 0: not measured yet
  std::uint64_t answers = 0;
  Instant answered_at;    // last
  double turnaround = 0;  // seconds a slot, from the lease (or the step's begin) to the answer
  double deviation = kDeviationUnmeasured;  // of a lease's seconds from the estimate, relative
  // Seconds that the first answer of a step, and each one after it, took longer than the computing.
  double first_lag = 0;
  double next_lag = 0;

  // Said by who knows the link. What a lease and its answer cost; not said: more than any computing.
  double exchange_seconds = std::numeric_limits<double>::infinity();
  // What a step costs the node beside the computing: its parameters, and one exchange.
  double step_seconds = 0;
  // What it takes to bring the node in after others worked: the parameters and samples that it lacks then.
  double swap_in_seconds = 0;

  // Seconds of steps that it could have worked in and had no slot of, since its last answer.
  double unused_seconds = 0;
  std::uint32_t lanes = 1;      // that its last lease was computed in,
  std::uint32_t lanes_max = 1;  // of those that it might have used

  bool measured() const { return answers > 0; }
  bool warm() const { return answers >= kWarmUp; }

  // A lease was answered. `step_begun` is of its step, if that is still open.
  void measure(const Grant& grant, std::optional<Instant> step_begun, const Computing& computing,
               Instant now);

  // How much of the measured costs still counts, from 1 down to 0. What is known of a node that was not used
  // for long may not hold any more (a link was full), and only trying it shows that.
  double trust() const;
  // The step's begin, or the lease if that is later: since then the node could compute.
  static Instant could_begin(const Grant& grant, std::optional<Instant> step_begun);
  // How many slots of `share` the node gets at once: half, so that the rest can go to another if this one
  // turns out slow; all, where its last leases deviated by less than an exchange costs.
  std::uint32_t portion_of(std::uint32_t share, std::uint32_t lanes_now) const;
};

}  // namespace w5xde
