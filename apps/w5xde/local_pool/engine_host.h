#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/dataset.h"
#include "learn/engine_library.h"
#include "net/address.h"
#include "record/summary.h"
#include "run/run_config.h"
#include "w5xde/result.h"

namespace w5xde {

// A process beside this one that has loaded the engine and started no thread. Local nodes are forked from it
// and share the cost of loading it. The coordinator's process never loads the engine.
class EngineHost {
 public:
  struct Options {
    std::filesystem::path engine;
    unsigned threads = 1;
    LogTier log = LogTier::normal;
    bool load_at_once = false;  // or with the first request: a coordinator that resumes may make none
  };

  // Call before this process starts a thread: the engine host is a fork of it.
  static Result<EngineHost> start(const Options& options);
  EngineHost(EngineHost&& other) noexcept;
  EngineHost& operator=(EngineHost&&) = delete;
  // The nodes are told to leave, and waited for.
  ~EngineHost();

  struct NewRun {
    ModelOptions model;
    std::filesystem::path model_file;
    std::uint64_t seed = 0;
    std::string init;  // as --init has it
    std::string data;  // what to train on, and
    std::uint32_t batch = 1;
    std::filesystem::path checkpoint;  // to write
  };
  // Writes the checkpoint of step 0, if the model takes the data.
  Status initialise(const NewRun& run);

  // How fast the engine computes slots of these sizes (batch_choice.h), of the data that `data` names.
  Result<std::vector<BatchTrial>> try_batches(const ModelOptions& model,
                                              const std::filesystem::path& model_file, std::uint64_t seed,
                                              const std::string& data,
                                              const std::vector<std::uint32_t>& sizes);

  struct Nodes {
    unsigned count = 1;
    Address address;
    std::string name;  // nodes are NAME-1, NAME-2, …
    std::string device = "auto";
    unsigned cores = 0;  // of the machine's, for all of them; 0: all it has
    std::filesystem::path model_cache;
    unsigned attempts_max = 0;  // as JoinOptions has it
  };
  // Nodes that crash or are killed are started again.
  Status start_nodes(const Nodes& nodes);
  // Of the nodes that run now, and of the engine host itself.
  std::vector<pid_t> processes() const;
  // Waits until every node has ended or `interrupt` is readable. The error that a node ended with, if any.
  Status wait(int interrupt) const;
  // None while nodes run. Then the error that one ended with, or that all have left. Never blocks.
  std::optional<Error> all_ended() const;

 private:
  EngineHost(pid_t pid, int socket, int ended) : pid_(pid), socket_(socket), ended_(ended) {}

  pid_t pid_ = -1;
  int socket_ = -1;  // requests and answers
  int ended_ = -1;   // gets one packet, when every node has ended
  bool has_nodes_ = false;
};

// Whether --model names a file: it is there, or its ending is one that TorchScript files have. Which ending a
// file that is there has does not matter.
bool is_script(const std::string& model);
// A run's model, for samples as this data has them.
ModelOptions model_options(const RunConfig& config, const Dataset& data, const std::string& device);

// Where this user's nodes keep models that are files.
std::filesystem::path default_model_cache();

// Where the engine lies: beside this program as it was built, or as it is installed.
Result<std::filesystem::path> find_engine(const std::string& asked_for);

}  // namespace w5xde
