// What the core costs: tensor streams and round trips against bare sockets, direct against generic
// serialization, every lossless codec on real gradients, zeros and noise, every gradient codec against
// memcpy.
#include <fmt/format.h>

#include <cstdio>

#include "harness.h"
#include "wire_groups.h"

int main(int argc, char** argv) {
  using namespace w5xde::bench;
  const auto options =
      parse_options(argc, argv,
                    "bench/wire: the wire, serialization and codecs against their baselines.\n"
                    "Groups: stream, round-trip, overhead, serialization, codec, gradient, policy.");
  if (!options) {
    fmt::print(stderr, "bench/wire: {}\n", options.error().message);
    return 2;
  }
  if (!*options) return 0;

  Report report;
  for (const Group& group : wire_groups()) {
    if (group.name.find((*options)->only) == std::string::npos) continue;
    group.run((*options)->rounds, report);
  }
  if ((*options)->json_path.empty()) return 0;
  if (const auto written = report.write_json((*options)->json_path); !written.ok()) {
    fmt::print(stderr, "bench/wire: {}\n", written.error().message);
    return 1;
  }
  return 0;
}
