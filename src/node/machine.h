#pragma once

#include <cstdint>
#include <string>

namespace w5xde {

// What nodes say of the machine that they are on.
struct Machine {
  std::string id;           // equal for nodes that share the same processor cores
  std::uint32_t cores = 0;  // that they share

  static Machine here();
};

// What could be allocated now without others having to give way; UINT64_MAX where that is not known.
std::uint64_t available_memory_bytes();

// The machine's own name for itself; empty where it has none.
std::string host_name();

// The processor's own name for itself: equal bits are promised between equal ones only.
std::string processor_name();

}  // namespace w5xde
