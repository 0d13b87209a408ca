#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "learn/engine.h"
#include "net/tcp.h"
#include "record/summary.h"
#include "w5xde/result.h"

namespace w5xde {

// A process beside this one that has loaded the engine and started no thread. Local nodes are forked from it:
// they share the cost of loading it. The coordinator's own process never sees the engine.
class EngineHost {
 public:
  struct Options {
    std::filesystem::path engine;
    unsigned threads = 1;
    LogTier log = LogTier::normal;
  };

  // Call before this process starts a thread or locks anything: the engine host is a fork of it. It loads
  // the engine at the first request.
  static Result<EngineHost> start(const Options& options);
  EngineHost(EngineHost&& other) noexcept;
  EngineHost& operator=(EngineHost&&) = delete;
  // The nodes are told to leave, and waited for.
  ~EngineHost();

  // Writes the checkpoint of step 0.
  Status initialise(const ModelOptions& model, const std::filesystem::path& model_file, std::uint64_t seed,
                    const std::filesystem::path& checkpoint);

  // How fast the engine is with slots of these sizes (batch_choice.h), made of what --data names.
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
    bool restart = true;        // those that crash or are killed
  };
  Status start_nodes(const Nodes& nodes);
  // Of the nodes that run now, and of the engine host itself.
  std::vector<pid_t> processes() const;
  // Waits until every node has ended; the first error that one ended with. Or until `interrupt` can be read
  // from.
  Status wait(int interrupt);
  // Every node has ended, and none will be started again: the first error that one ended with. Never blocks.
  std::optional<Error> all_ended() const;

 private:
  EngineHost(pid_t pid, int socket, int news) : pid_(pid), socket_(socket), news_(news) {}
  Result<std::string> ask(const std::string& request) const;
  Status tell(const std::string& request) const;
  Result<std::string> hear() const;

  pid_t pid_ = -1;
  int socket_ = -1;  // requests and answers
  int news_ = -1;    // what it says unasked: that every node has ended
};

// Where this user's nodes keep models that are files.
std::filesystem::path default_model_cache();

// Where the engine lies: beside this program as it was built, or as it is installed.
Result<std::filesystem::path> find_engine(const std::string& asked_for);

}  // namespace w5xde
