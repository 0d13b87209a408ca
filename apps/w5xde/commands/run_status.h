#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "net/address.h"
#include "w5xde/result.h"
#include "wire/status.h"

namespace w5xde {

// How a run is doing, or what became of it.
struct RunStatus {
  StatusReport report;
  std::vector<std::string> notes;  // whole sentences, for people
};

// What the coordinator at this address says of its run.
using AskCoordinator = std::function<Result<StatusReport>(const Address&)>;

// Of a run folder: what the coordinator that has it says, or else what was recorded, and how old that is.
Result<RunStatus> status_of_folder(const std::filesystem::path& path, const AskCoordinator& ask);

std::string to_text(const RunStatus& status);  // ends with a newline

}  // namespace w5xde
