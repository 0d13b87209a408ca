#pragma once

#include <string>
#include <vector>

#include "record/run_database.h"
#include "w5xde/result.h"

namespace w5xde {

// What a run's database has of its losses.
struct RunHistory {
  std::string name;
  std::vector<RunDatabase::StepRow> steps;
  std::vector<RunDatabase::EvaluationRow> evaluations;
};

// invalid where there is no step yet.
Result<RunHistory> read_history(const std::string& run);

// Training loss and evaluation loss over steps, and the accuracy below where there is one.
std::string to_svg(const std::vector<RunHistory>& runs);
// A line for each step of the database and each evaluation, under a line of names.
std::string to_csv(const std::vector<RunHistory>& runs);

}  // namespace w5xde
