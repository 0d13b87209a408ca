// What the figures of `w5xde bench seeds` show, in sentences. Each says only what it has figures for, and is
// empty where it has none.
#pragma once

#include <string>
#include <vector>

#include "seeds_report.h"

namespace w5xde {

// Of rows that were compared with each other: who did most and least, and which differences are noise.
std::string comparison_sentences(const std::vector<Row>& rows);
std::string time_sentence(const std::vector<Row>& rows);
std::string spread_sentence(const std::vector<Row>& rows);
std::string loss_sentence(const std::vector<Row>& rows);
std::string buffers_sentence(const std::vector<Row>& rows, const Conditions& conditions);
std::string logging_sentence(const std::vector<Row>& rows);
// The widest of the rows' own spreads between rounds; NaN when there was one round.
double noise_of(const std::vector<Row>& rows);

}  // namespace w5xde
