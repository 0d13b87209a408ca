#include "commands/newest_checkpoint.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/errors.h"

namespace w5xde {

Result<CheckpointFile> newest_checkpoint(const RunFolder& folder) {
  std::vector<std::string> skipped;
  W5XDE_TRY(auto newest, folder.newest(&skipped));
  if (!newest) return invalid("{} has no checkpoint yet", folder.path().string());
  for (const std::string& why : skipped)
    fmt::print(stderr, "w5xde: this checkpoint cannot be used: {}\n", why);
  if (!skipped.empty()) {
    fmt::print(stderr, "w5xde: the checkpoint of step {} takes its place, which is older\n",
               newest->info().step);
  }
  return std::move(*newest);
}

}  // namespace w5xde
