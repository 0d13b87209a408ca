#pragma once

#include <string>
#include <string_view>

#include "w5xde/result.h"

namespace w5xde {

// The coordinator's link, which all nodes share; each direction has the whole rate.
struct LinkSpeed {
  double bytes_per_second = 0;  // 0: loopback, where bytes cost what the processor takes to move them
  double round_trip_seconds = 0;

  bool loopback() const { return bytes_per_second == 0; }
};

// "loopback", or RATE[,DELAY]: "100mbit,40ms", "20 Mbit/s", "1Gbps", "12MB/s,0.5ms". The delay is the round
// trip. A small b is a bit, a capital B a byte; the case of other letters does not matter.
Result<LinkSpeed> parse_link_speed(std::string_view text);

// As it was understood: "100 Mbit/s, round trip 40 ms".
std::string to_string(const LinkSpeed& link);

}  // namespace w5xde
