#include "wire_groups.h"

namespace w5xde::bench {

std::vector<Group> wire_groups() {
  return {{"stream", bench_streams},    {"round-trip", bench_round_trips},
          {"overhead", bench_overhead}, {"serialization", bench_serialization},
          {"codec", bench_codecs},      {"gradient", bench_gradients},
          {"policy", bench_policy}};
}

}  // namespace w5xde::bench
