#pragma once

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

}  // namespace w5xde::bench
