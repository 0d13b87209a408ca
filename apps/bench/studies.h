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

// Those that `only` names: words with commas between, each a part, a preset, a workload or a link. Words of
// one kind are alternatives. A kind that is not named does not limit the choice.
Result<std::vector<Cell>> chosen(const std::vector<Cell>& cells, const std::string& only);

// Whether two cells are compared with each other. Such cells follow each other in all_cells().
bool compared(const Cell& one, const Cell& other);

// One run of one cell.
struct Turn {
  std::size_t cell = 0;
  unsigned round = 0;
};
// Cells that are compared with each other take turns, round by round. Each round begins with another of them,
// and every other round goes backwards, so that no cell always runs after the same one.
std::vector<Turn> interleaved(const std::vector<Cell>& cells, unsigned rounds);

// Whether `w5xde plan` predicts each of its turns.
bool predicted(const Cell& cell);

// How long a pool of this cell runs before its batches are counted: nodes join, get their first parameters,
// and their first steps are measured.
double warm_up_seconds(const Cell& cell);

// The flags of this cell's run but for its length: what `w5xde plan` takes.
Words run_flags(const Cell& cell, unsigned nodes);
// The flags of `w5xde train`: warm up, then train for `seconds`.
Words flags_of(const Cell& cell, unsigned nodes, double seconds);

// "adaptive, 2M, 100mbit", and in what else the cell differs.
std::string name_of(const Cell& cell);

}  // namespace w5xde
