#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/work_progress.h"
#include "learn/engine_library.h"
#include "net/connection.h"
#include "net/invitation.h"
#include "net/loop.h"
#include "node/computation.h"
#include "node/machine.h"
#include "node/replica.h"
#include "wire/enrolment.h"

namespace w5xde {

struct NodeOptions {
  std::string name;
  unsigned threads = 1;  // for which the engine library was loaded
  std::string device = "auto";
  Machine machine;  // whose cores it shares with other nodes
  // Where the link is slow, samples are kept in this much memory.
  std::uint64_t sample_cache_bytes = kSampleCacheBytes;
  // Model files are kept here, named by their hash.
  std::filesystem::path model_cache;
  std::function<Result<std::unique_ptr<Engine>>(const ModelOptions&, const std::filesystem::path&)>
      make_engine;
  // Whether a model that is a file may run here, which is code: any; or only those with an accepted SHA-256.
  enum class ModelFiles { any, accepted };
  ModelFiles model_files = ModelFiles::any;
  std::vector<std::string> accepted;  // 64 hexadecimal digits each
  // What it proves to a coordinator with TLS.
  std::string identity;                  // of the key that it has shown there
  std::optional<Invitation> invitation;  // none: an authority vouches for it
  const Clock* clock = nullptr;          // measures how long computing takes; null: the loop's clock
};

// What a node computes a run's leases with.
struct LoadedModel {
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Computation> computation;
  std::optional<Replica> replica;
  std::uint32_t lanes_max = 1;  // for which there are cores and memory
};

// How a node joins a run: hello, offer, the model's file if it is not in the cache, the engine, ready.
// Loading and hashing happen beside the loop, because large models take seconds. Loop thread only.
class Enrolment {
 public:
  // Calls `enrolled` once, before ready is sent; if enrolment fails, closes the connection with the reason.
  Enrolment(const NodeOptions& options, const Clock& clock, const Log& log, Background& background,
            std::function<void(LoadedModel)> enrolled);

  // Says hello. The connection must outlive the background.
  void begin(Connection& connection);

  Status received_hello(Bytes head);
  Status received_offer(Bytes head);
  Result<MutableBytes> place_model(const FrameHeader& header, Bytes head);
  Status received_model();

  // How many floats of the first parameters are here: they may take long as well.
  void tell_of_first_parameters(std::uint64_t floats, std::uint64_t floats_total);

  const Offer& offer() const { return offer_; }

 private:
  enum class Stage {
    greeting,  // until the offer
    looking,   // whether the model's file is in the cache
    fetching,  // the model's file arrives
    loading,   // until the end of the stay: then the node works
  };
  using FindFile = std::function<Result<std::filesystem::path>()>;
  struct Loading {
    Status status;
    LoadedModel model;
  };

  Status prove_invitation();
  Status check_offer() const;
  Status check_model_file() const;
  void look_for_file();
  Status ask_for_model();
  Status load(FindFile find_file);
  Status load_into(LoadedModel& loaded, const ModelOptions& options, const FindFile& find_file) const;
  void warm_up(LoadedModel& loaded) const;
  void loaded(Loading& loading);
  Ready describe_node(const Engine& engine) const;
  std::uint32_t lanes_max(const Engine& engine) const;

  const NodeOptions& options_;
  const Clock& clock_;
  Log log_;
  Background& background_;
  std::function<void(LoadedModel)> enrolled_;
  Connection* connection_ = nullptr;
  const Limits limits_;
  Stage stage_ = Stage::greeting;
  Offer offer_;
  std::vector<std::byte> model_bytes_;    // the part of the model's file that is here
  std::optional<WorkProgress> arriving_;  // of the model's file, then of the first parameters
};

}  // namespace w5xde
