#include "node/processor.h"

#include <fstream>

namespace w5xde {

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2, 200);
  }
  return "unknown";
}

}  // namespace w5xde
