#pragma once

#include <optional>
#include <string>

#include "local_pool/child.h"
#include "net/tcp.h"
#include "record/run_database.h"
#include "record/summary.h"
#include "w5xde/result.h"

namespace w5xde {

// Where a pool's two sides run when a link lies between them.
struct LinkEnds {
  Address listen, join;            // the coordinator's address, as itself and as nodes know it
  Words at_coordinator, at_nodes;  // the words before a command that make it run at this end
};

struct PoolRun {
  unsigned nodes = 1;
  Words flags;                     // of the run: --model, --seconds, …
  std::string engine;              // empty: the one beside this program
  double warm_up_seconds = 0;      // of the run's seconds, the first
  const LinkEnds* link = nullptr;  // nullptr: all on this machine
};

struct PoolOutcome {
  Summary summary;                           // of the whole run
  std::optional<RunDatabase::Stretch> warm;  // after the warm-up; none: too few steps were recorded for that
};

// Runs a pool as a person would: w5xde train or, over a link, w5xde serve and w5xde join. Over a link the
// summary's memory is the coordinator's alone.
Result<PoolOutcome> run_pool(const PoolRun& pool, const Watch& watch);

}  // namespace w5xde
