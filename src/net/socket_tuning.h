// What is asked of the kernel for one TCP socket. A refusal is no error: training works without it, and the
// report says what was granted.
#pragma once

#include <cstdint>
#include <filesystem>

#include "net/socket_fit.h"
#include "net/stream.h"

namespace w5xde {

// Everything as the options say, and nothing fitted any more but buffers that are set already.
void tune_socket(int fd, const SocketOptions& options);
// For a peer on this machine.
void tune_loopback(int fd);

// How far this machine's kernel goes; as in BufferState. 0 is not known: a container may not see it.
struct KernelLimits {
  std::uint64_t send_ceiling = 0;
  std::uint64_t send_granted = 0;
  std::uint64_t receive_ceiling = 0;
  std::uint64_t receive_granted = 0;

  bool operator==(const KernelLimits&) const = default;
};

KernelLimits read_kernel_limits(const std::filesystem::path& folder = "/proc/sys/net");

// Gives the socket what fit_buffer and fit_unsent say.
void fit_socket(int fd, const MeasuredLink& link, const KernelLimits& limits);

// What the options are now, and what the kernel has measured.
TcpReport report_socket(int fd);

}  // namespace w5xde
