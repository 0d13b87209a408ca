#pragma once

#include "base/log.h"
#include "net/tcp.h"
#include "node/node.h"
#include "w5xde/result.h"

namespace w5xde {

struct JoinOptions {
  Address address;
  NodeOptions node;
  // How often in a row a coordinator that cannot be reached is tried; 0: without end.
  unsigned attempts_max = 0;
  // Before the second attempt; it doubles up to delay_max.
  Duration delay_first = std::chrono::milliseconds(100);
  Duration delay_max = std::chrono::seconds(30);
};

// Connects, works, and connects again when the link breaks, until the run is over, it is refused,
// SIGTERM tells it to leave (it finishes its lease first; a second signal does not wait), or attempts_max
// attempts in a row have failed. A stay without work is a failed attempt. Ok when it left with a goodbye.
Status join(JoinOptions options, const Log& log);

}  // namespace w5xde
