#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace w5xde {

// The machine that a node is on.
struct Machine {
  std::string id;                           // equal for nodes that share the same processor cores
  std::array<std::byte, 16> computer{};     // equal for all processes of this computer, or container
  std::uint32_t cores = 0;                  // that they share
  std::uint64_t memory_bytes = UINT64_MAX;  // free when it was asked; the maximum where it is not known

  static Machine here();
};

// The machine's own name for itself; empty where it has none.
std::string host_name();

// The processor's own name for itself: equal bits are promised between equal ones only.
std::string processor_name();

// The memory of a process, with pages that it shares counted in proportion, so that the sum over processes is
// what the machine spends. 0 when the process is gone or not ours to look at.
std::uint64_t proportional_set_bytes(pid_t pid);

}  // namespace w5xde
