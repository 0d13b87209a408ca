#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/log.h"
#include "net/tcp.h"
#include "net/tls.h"
#include "node/node.h"
#include "w5xde/result.h"

namespace w5xde {

// What a node did, in all of its stays.
struct Contributed {
  std::string run;            // empty while no coordinator has offered one
  std::uint64_t batches = 0;  // computed
};

struct JoinOptions {
  Address address;
  // None: without encryption; then a model that is a file must be accepted, but on this machine.
  std::optional<TlsContext> tls;
  NodeOptions node;
  // How often in a row a coordinator that cannot be reached is tried; 0: without end.
  unsigned attempts_max = 0;
  // Before the second attempt; it doubles up to delay_max.
  Duration delay_first = std::chrono::milliseconds(100);
  Duration delay_max = std::chrono::seconds(30);
  // Called every second, at the end of each stay, and before join() returns.
  std::function<void(const Contributed&)> on_progress = [](const Contributed&) {};
};

// Connects, works, and connects again when the link breaks, until the run is over, it is refused,
// SIGTERM tells it to leave (it finishes its lease first; a second signal does not wait), or attempts_max
// attempts in a row have failed. A stay without work is a failed attempt. Ok when it left with a goodbye:
// why.
Result<std::string> join(JoinOptions options, const Log& log);

}  // namespace w5xde
