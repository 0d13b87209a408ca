#pragma once

#include "base/log.h"
#include "net/tcp.h"
#include "node/node.h"
#include "w5xde/result.h"

namespace w5xde {

struct JoinOptions {
  Address address;
  NodeOptions node;
  // How often in a row a coordinator that cannot be reached is tried; the delay between doubles up to 10 s.
  unsigned attempts_max = 12;
};

// A node of this process: connects, works, and connects again when the link breaks, until the run is over,
// the coordinator refuses it, SIGINT or SIGTERM tells it to leave (it finishes its lease first; a second
// signal does not wait), or nobody answers. Ok when it left in peace.
Status join(JoinOptions options, const Log& log);

}  // namespace w5xde
