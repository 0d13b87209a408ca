// What the figures of `w5xde bench original` show, in sentences. Each says only what it has figures for, and
// is empty where it has none.
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"

namespace w5xde {

// Of rows that were compared with each other: who did most and least, and which differences are noise.
std::string comparison_sentences(const std::vector<Row>& rows);
std::string time_sentence(const std::vector<Row>& rows);
std::string spread_sentence(const std::vector<Row>& rows);
std::string loss_sentence(const std::vector<Row>& rows);
std::string buffers_sentence(const std::vector<Row>& rows, const Conditions& conditions);
std::string logging_sentence(const std::vector<Row>& rows);
// From when on batches were counted, and what else is told of the whole run.
std::string warm_up_sentence(const std::vector<Row>& rows);
// "12 s (2M 100mbit), 1 s (original loopback, 2M loopback)"
std::string warm_up_list(const std::vector<Row>& rows);
// Of a row with rounds whose batches are of the whole run; others: empty.
std::string cold_sentence(const Row& row);
// "yes", "no", or a dash.
std::string yes_or_no(const ForecastVerdict& verdict);
// How many forecasts came true, and which was farthest off.
std::string forecast_sentence(const BenchReport& report);
// The widest of the rows' own spreads between rounds; NaN when there was one round.
double noise_of(const std::vector<Row>& rows);

}  // namespace w5xde
