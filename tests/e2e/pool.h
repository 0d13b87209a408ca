// A pool of real processes: the w5xde that was just built, a run folder, and what tests do to it.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temporary_folder.h"

namespace w5xde {

using Words = std::vector<std::string>;

// What `train` and `serve` are asked to do, whoever does it.
struct Workload {
  std::string name;
  Words flags;
  std::uint64_t steps = 0;
  std::uint64_t samples = 0;  // of the whole run, as steps or epochs have it
};
// How a test with this workload is named in reports.
void PrintTo(const Workload& workload,
             std::ostream* out);  // NOLINT(readability-identifier-naming): gtest's name

// One run in a folder that goes with it.
class Pool {
 public:
  explicit Pool(Workload workload);

  const Workload& workload() const { return workload_; }
  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path run() const { return folder_ / "run"; }
  // Where its processes keep what they cache.
  std::filesystem::path home() const { return folder_ / "home"; }

  // Where the coordinator that was served listens.
  const std::string& address() const { return address_; }

  // w5xde with these arguments.
  Process start(const Words& arguments) const;
  Process start(const Words& arguments, Process::Options options) const;

  // A coordinator with nodes of its own; the run's flags the first time, none when it goes on.
  Process train(unsigned nodes, const Words& more = {});
  // A coordinator without; listening when this returns. The next ones take the first one's port.
  Process serve(const Words& more = {});
  Process join(const std::string& name, const Words& more = {}) const;

  // As the coordinator that was served tells it.
  nlohmann::json status() const;
  // Asks for the status again and again until this number of it ("step", "batches") has come so far.
  void wait_for(const std::string& number, std::uint64_t least) const;

  // Of the coordinator that ended last.
  nlohmann::json summary() const;

 private:
  Words coordinator(const std::string& command, const Words& more);

  Workload workload_;
  TemporaryFolder folder_;
  bool begun_ = false;
  std::string address_ = "127.0.0.1:0";
};

// The step in a line like "checkpoint of step 12".
std::uint64_t step_in(const std::string& line);

// The first images of Fashion-MNIST, as an idx folder: what a test of seconds has time for.
void write_few_images(const std::filesystem::path& folder);
inline constexpr std::uint32_t kFewImages = 1024;

}  // namespace w5xde
