// What this machine's kernel gives a socket. Limits differ from machine to machine, and whoever may pass them
// too.
#pragma once

#include <cstdint>

namespace w5xde {

struct KernelBuffers {
  std::uint64_t send = 0;
  std::uint64_t receive = 0;
};

// What a new TCP socket reports that asked for `bytes` bytes without special rights.
KernelBuffers granted_to_anyone(std::uint64_t bytes);

}  // namespace w5xde
