#include "sim/fault_schedule.h"

namespace w5xde {

FaultSchedule::FaultSchedule(SimPool& pool, std::uint64_t seed) : random_(seed) {
  pool.on_turn = [this, &pool] {
    if (pool.coordinator().status().batches < due_batches_ || ++turns_ < due_turns_) return;
    if (!pool.kill_node(random_.below(pool.nodes()))) return;
    ++killed_;
    due_batches_ += 12 + random_.below(12);
    due_turns_ = 1 + random_.below(12);
    turns_ = 0;
  };
}

}  // namespace w5xde
