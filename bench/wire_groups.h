#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "harness.h"

namespace w5xde::bench {

struct Group {
  std::string name;
  std::function<void(int rounds, Report& report)> run;
};

std::vector<Group> wire_groups();

void bench_streams(int rounds, Report& report);
void bench_round_trips(int rounds, Report& report);
void bench_overhead(int rounds, Report& report);
void bench_serialization(int rounds, Report& report);
void bench_codecs(int rounds, Report& report);
void bench_gradients(int rounds, Report& report);
void bench_policy(int rounds, Report& report);

// Gradients of a real run, repeated to fill the size; their period is longer than a chunk, so no codec sees
// it.
std::vector<std::byte> captured_gradients(std::size_t bytes);

}  // namespace w5xde::bench
