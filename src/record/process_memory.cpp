#include "record/process_memory.h"

#include <fmt/format.h>

#include <fstream>
#include <limits>
#include <string>

namespace w5xde {

std::uint64_t proportional_set_bytes(pid_t pid) {
  std::ifstream rollup(fmt::format("/proc/{}/smaps_rollup", pid));
  std::string key;
  while (rollup >> key) {
    std::uint64_t kibibytes = 0;
    if (key == "Pss:") return rollup >> kibibytes ? kibibytes * 1024 : 0;
    rollup.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

}  // namespace w5xde
