#include "node/machine.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <optional>
#include <thread>

#include "base/hash.h"
#include "base/limits.h"
#include "net/crypto.h"

namespace w5xde {

namespace {

std::string first_line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// A container may have all cores in sight and a fraction of their time: "50000 100000" is half a core.
std::uint32_t quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return UINT32_MAX;
  return static_cast<std::uint32_t>(std::ceil(quota / period));
}

// And of their memory; "max" is not a number.
std::uint64_t quota_memory() {
  std::ifstream limit_file("/sys/fs/cgroup/memory.max"), used_file("/sys/fs/cgroup/memory.current");
  std::uint64_t limit = 0, used = 0;
  if (!(limit_file >> limit) || !(used_file >> used)) return UINT64_MAX;
  return limit - std::min(limit, used);
}

// The number behind `key`, which counts kilobytes, in bytes; none where the file does not have it.
std::optional<std::uint64_t> bytes_in(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::uint64_t kilobytes = 0;
  for (std::string word; file >> word;) {
    if (word == key && file >> kilobytes) return kilobytes * kKiB;
  }
  return std::nullopt;
}

std::uint64_t free_memory() {
  return std::min(bytes_in("/proc/meminfo", "MemAvailable:").value_or(UINT64_MAX), quota_memory());
}

}  // namespace

// The boot's number and the host's name tell machines and containers apart; the processor mask, nodes that
// were given cores of their own.
Machine Machine::here() {
  Machine machine{.cores = std::max(1u, std::thread::hardware_concurrency()), .memory_bytes = free_memory()};
  std::string cores;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    machine.cores = static_cast<std::uint32_t>(CPU_COUNT(&mask));
    cores = hash128_hex(std::as_bytes(std::span(&mask, 1)));
  }
  const std::string computer =
      fmt::format("{}\n{}", first_line_of("/proc/sys/kernel/random/boot_id"), host_name());
  // Only their hashes travel: who the machine is, is nobody's business.
  machine.id = hash128_hex(bytes_of(computer + "\n" + cores));
  std::ranges::copy_n(sha256(bytes_of(computer)).begin(), machine.computer.size(), machine.computer.begin());
  machine.cores = std::min(machine.cores, quota_cores());
  return machine;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2, 200);
  }
  return "unknown";
}

std::uint64_t proportional_set_bytes(pid_t pid) {
  return bytes_in(fmt::format("/proc/{}/smaps_rollup", pid), "Pss:").value_or(0);
}

}  // namespace w5xde
