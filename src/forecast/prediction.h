// What a run will come to, before anything is trained: how fast, how many bytes, how much memory, and what it
// will wait for most. Arithmetic only; the figures of the machine and the model are brought along.
//
//   sync   a step is one thing after the other: parameters go down, nodes compute, contributions come up, the
//          coordinator adds them up. What happens meanwhile (leases ahead, the first contributions of a node
//          that has several, where models travel in parts the way back of those that are done) costs nothing
//          until it takes longer.
//   async  nobody waits: whatever is busy longest with a contribution sets the rate.
#pragma once

#include <cstdint>
#include <string_view>

#include "forecast/link_speed.h"
#include "lease/tuning.h"
#include "payload/form.h"
#include "run/run_config.h"

namespace w5xde {

struct Situation {
  RunConfig config;
  BlockShape shape;                            // the model's
  double slot_seconds = 0;                     // that one core computes on a slot
  double exchange_seconds = kExchangeSeconds;  // that a lease and its answer take of the two processes
  double codec_pace = 1;                       // what codecs take, as part of what is usual (traffic.h)
  std::uint64_t engine_bytes = 0;              // memory of a process with engine and model
  std::uint64_t samples = 0;                   // that the data has
  std::uint64_t sample_bytes = 0;              // of one, input and target
  std::uint64_t sample_numbers = 0;            // that these bytes are
  std::uint32_t nodes = 1;
  std::uint32_t cores = 1;  // of all nodes together; one node a core computes at a time
  LinkSpeed link;

  // What one of the machines would do by itself, without a pool, in batches a second.
  double alone_batches_per_second() const { return cores / (one_machine() ? 1.0 : nodes) / slot_seconds; }
  // Whether the nodes share their cores. Where there are more nodes than cores, those are one machine's.
  bool one_machine() const { return link.loopback() || cores < nodes; }
};

enum class Bottleneck { compute, link_down, link_up, round_trips, coordinator };
std::string_view name_of(Bottleneck bottleneck);

struct Prediction {
  double steps_per_second = 0;    // async: contributions, each of which is an update
  double batches_per_second = 0;  // slots
  double contributions = 0;       // to a step
  double nodes_computing = 0;     // at a time

  // Of a step. sync: what it waits for each. async: how long each is busy with it.
  struct Seconds {
    double compute = 0;  // with the nodes' codecs
    double link_down = 0;
    double link_up = 0;
    double round_trips = 0;
    double coordinator = 0;
  };
  Seconds seconds;
  Bottleneck bottleneck = Bottleneck::compute;

  // Of a step.
  double bytes_down = 0, bytes_up = 0;            // on the coordinator's link
  double node_bytes_down = 0, node_bytes_up = 0;  // of one node, on average
  double samples_bytes = 0;                       // that each node receives once, and keeps

  std::uint64_t coordinator_memory_bytes = 0;
  std::uint64_t node_memory_bytes = 0;
};

Prediction predict(const Situation& situation);

// What an exchange must cost for this situation's steps to take so long, which a pool was seen to do. Within
// what can be believed of a machine: where steps are long, little can be told from them.
double exchange_seconds_for(Situation situation, double step_seconds);

}  // namespace w5xde
