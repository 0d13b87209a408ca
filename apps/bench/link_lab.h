#pragma once

#include <memory>
#include <string>

#include "local_pool/pool_run.h"
#include "w5xde/result.h"

namespace w5xde {

// A slow link on this machine, for a coordinator at one end and nodes at the other. As root it is a veth pair
// between two network namespaces, so that the kernel's own TCP meets the limit; otherwise it is a relay.
struct LinkLab {
  // The rate is that of each direction, for all nodes together.
  static Result<LinkLab> open(double bytes_per_second);

  std::string how;  // the link is made, for people
  LinkEnds ends;
  std::shared_ptr<void> link;  // what the destructor removes: the namespaces or the relay
};

}  // namespace w5xde
