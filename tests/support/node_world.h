#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "net/asio_loop.h"
#include "node/node.h"
#include "support/fake_engine.h"
#include "support/hand_peer.h"
#include "support/sampled_lease.h"
#include "support/temporary_folder.h"

namespace w5xde {

// A real node with a fake engine at one end of a memory stream; at the other a coordinator that is played by
// hand. The loop is a real one: a node's first lease is computed on a thread.
class NodeWorld {
 public:
  NodeWorld();
  ~NodeWorld();

  // Connects the two. Nothing is said yet by the coordinator.
  void start();
  // Hello, offer, ready: the node waits for work.
  void enrol(const Offer& offer);
  Offer offer() const;

  bool run_until(const std::function<bool()>& condition);
  // Runs until the coordinator holds a frame of this type, and takes it out; none when the connection ends
  // before.
  std::optional<ReceivedFrame> hear(FrameType type);
  std::optional<Contribution> hear_contribution();
  // Runs until the node's stay is over; why it is.
  std::string ending();

  // Floats `first` … `first + count - 1` of a version.
  void say_parameters(std::uint64_t version, std::uint64_t first, std::uint64_t count);
  void say_parameters(std::uint64_t version) { say_parameters(version, 0, floats()); }
  void say_lease(const SampledLease& made) { peer->say(FrameType::lease, made.lease, made.payload); }
  // Every version has other floats.
  std::vector<float> state_of(std::uint64_t version) const;
  std::uint64_t floats() const { return FakeEngine().description().floats(); }
  // What the node must answer to a lease, as bytes.
  std::vector<std::byte> expected(const SampledLease& made, std::uint64_t version) const;

  AsioLoop loop;
  TemporaryFolder folder;
  Log log{LogTier::silent};
  NodeOptions options;
  FakeEngine::Touch touch;              // of the node's engine
  std::filesystem::path engine_s_file;  // the model file that the engine was last made with
  ModelOptions model;                   // and what else it was made with
  int engines_made = 0;
  std::unique_ptr<Node> node;
  std::unique_ptr<HandPeer> peer;
};

}  // namespace w5xde
