#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "data/dataset.h"
#include "learn/engine_library.h"
#include "local_pool/route.h"
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
    std::string init;                   // as --init has it
    std::string train;                  // as --train has it, and
    std::filesystem::path frozen_file;  // to write, where that leaves parameters out
    std::string data;                   // what to train on, and
    std::string data_fingerprint;
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
    Route route;
    std::vector<std::string> accepted;  // the SHA-256 of model files that may run here however they came
    std::string name;                   // nodes are NAME-1, NAME-2, …
    std::string device = "auto";
    unsigned cores = 0;  // of the machine's, for all of them; 0: all it has
    std::filesystem::path model_cache;
    unsigned attempts_max = 0;    // as JoinOptions has it
    double progress_seconds = 0;  // between two reports of what they did; 0: none
  };
  // What the nodes did together, those that were started again included.
  struct Work {
    std::string run;  // empty while they have joined none
    std::uint64_t batches = 0;
    std::string why_left;  // as the last of them says it
  };
  // Nodes that crash or are killed are started again.
  Status start_nodes(const Nodes& nodes);
  // Of the nodes that run now, and of the engine host itself.
  std::vector<pid_t> processes() const;
  // Waits until every node has ended or `interrupt` is readable; none then. The error that a node ended with,
  // if any.
  Result<std::optional<Work>> wait(int interrupt, const std::function<void(const Work&)>& on_progress) const;
  // Tells the nodes to leave, and waits for them. Nothing can be asked of the engine host afterwards.
  Result<Work> leave();
  // None while nodes run. Then the error that one ended with, or that all have left. Never blocks.
  std::optional<Error> all_ended() const;

 private:
  EngineHost(pid_t pid, int socket, int ended) : pid_(pid), socket_(socket), ended_(ended) {}

  pid_t pid_ = -1;
  int socket_ = -1;  // requests and answers
  int ended_ = -1;   // gets one packet, when every node has ended
  bool has_nodes_ = false;
};

}  // namespace w5xde
