#pragma once

#include <sys/types.h>

#include <cstdint>

namespace w5xde {

// The memory of a process, with pages that it shares counted in proportion, so that the sum over processes is
// what the machine spends. 0 when the process is gone or not ours to look at.
std::uint64_t proportional_set_bytes(pid_t pid);

}  // namespace w5xde
