// A whole pool in one process: a real coordinator, real nodes, real TCP, on one loop and one thread (but the
// nodes' first leases), with an engine that takes microseconds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "coordinator/coordinator.h"
#include "net/asio_loop.h"
#include "net/link.h"
#include "node/node.h"
#include "support/fake_engine.h"
#include "support/hand_peer.h"
#include "support/temporary_folder.h"

namespace w5xde {

// Thirty steps of six slots of 24 samples: 4.3 epochs of `synthetic`, whose last slots are not full.
RunConfig sim_config();

// The hash of a run without any pool: slot after slot, added up and applied right here.
std::string plain_hash(const RunConfig& config);

// The same run with `nodes` nodes, undisturbed.
Summary run_to_end(const RunConfig& config, unsigned nodes);

class SimPool {
 public:
  explicit SimPool(const RunConfig& config);
  ~SimPool();

  struct NodeShape {
    FakeEngine::Touch touch = {};
    std::optional<LinkShape> link = {};  // none: straight to the coordinator
    std::uint64_t seed = 0;              // of the link
    Machine machine = {};                // whose cores it shares; none: nobody's
    std::function<void(Evaluation& evaluation)> touch_evaluation = {};
  };
  // Comes back whenever its stay ends, until the run is over. The run waits for those that are added before
  // it starts.
  void add_node(NodeShape shape);
  void add_nodes(unsigned count);
  std::size_t nodes() const { return members_.size(); }
  // Gone without a word, as by kill -9, and back at once. False: it is not there just now.
  bool kill_node(std::size_t number);
  // All of them gone without a word, and none comes back.
  void kill_nodes_for_good();
  // Gone without a word; started again from its newest checkpoint.
  void restart_coordinator();

  // As with a large model.
  void share_memory() { shared_bytes_min_ = 0; }
  // Instead of what the configuration names.
  void train_on(std::shared_ptr<const Dataset> data) { data_ = std::move(data); }
  // To be evaluated on, at the end and as the configuration says.
  void evaluate_on(std::shared_ptr<const Dataset> data) { evaluation_ = std::move(data); }

  // Starts the coordinator, which waits for all nodes and for `more`.
  void start(unsigned more = 0);
  // Runs until the condition holds; false when it does not for a minute. on_turn is called after every task.
  bool run_until(const std::function<bool()>& condition);
  // Runs to the end of the run, however that is: "ok", or the error.
  std::string run();
  std::function<void()> on_turn;

  // A node that is played by hand: hello, offer and ready are said.
  std::unique_ptr<HandPeer> enrol_by_hand(const std::string& name);
  std::unique_ptr<HandPeer> connect_by_hand();
  std::unique_ptr<Stream> connect_stream();

  Coordinator& coordinator() { return *coordinator_; }
  const RunConfig& config() const { return config_; }
  // What the next coordinator is started with.
  void set_config(const RunConfig& config) { config_ = config; }
  std::filesystem::path run_folder() const { return folder_ / "run"; }
  AsioLoop& loop() { return loop_; }
  // The coordinator, which has the run's folder, is gone then.
  CheckpointFile newest_checkpoint();
  std::uint64_t stays() const { return stays_; }
  std::uint64_t bits_flipped() const;

 private:
  struct Member;
  void connect(Member& member);
  void tend();
  void start_coordinator(unsigned nodes_awaited);

  AsioLoop loop_;
  TemporaryFolder folder_;
  Log log_{LogTier::silent};
  RunConfig config_;
  std::shared_ptr<const Dataset> data_, evaluation_;
  std::unique_ptr<Coordinator> coordinator_;
  Address address_;
  std::vector<std::unique_ptr<Member>> members_;
  Random random_{1};
  std::uint64_t shared_bytes_min_ = kSharedBytesMin;
  std::uint64_t stays_ = 0;
};

}  // namespace w5xde
