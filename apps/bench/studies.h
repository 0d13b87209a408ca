// What `w5xde bench original` measures, and in which order.
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"
#include "local_pool/child.h"
#include "w5xde/result.h"

namespace w5xde {

// Every cell of the report: presets, then the two studies.
std::vector<Cell> all_cells();

// Those that `only` asks for: words with commas between, each a part, a preset, a workload or a link. Words
// of one kind are alternatives; kinds that are not mentioned are free. Empty: all.
Result<std::vector<Cell>> chosen(const std::vector<Cell>& cells, const std::string& only);

// One run of one cell.
struct Turn {
  std::size_t cell = 0;
  unsigned round = 0;
};
// Cells that are compared with each other take turns, round by round. Each round begins with another of them,
// and every other one goes backwards: who runs after whom is then nobody's advantage.
std::vector<Turn> interleaved(const std::vector<Cell>& cells, unsigned rounds);

// Whether `w5xde plan` is asked before each of its turns.
bool predicted(const Cell& cell);

// How long a pool of this cell runs before it counts: until nodes have joined, have their first parameters,
// and their first steps are measured.
double warm_up_seconds(const Cell& cell);

// What a run of this cell is.
Words run_flags(const Cell& cell, unsigned nodes);
// What `w5xde train` is asked for in this cell: to warm up, and then to train for `seconds`.
Words flags_of(const Cell& cell, unsigned nodes, double seconds);

// "adaptive, 2M, 100mbit", and what else sets the cell apart.
std::string name_of(const Cell& cell);

}  // namespace w5xde
