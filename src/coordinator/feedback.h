#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "coordinator/ledger.h"
#include "record/checkpoint.h"
#include "tensor/parameter_block.h"

namespace w5xde {

// What lossy codecs have still to say, as far as it is the coordinator's business: copies of what nodes have,
// gathered for a checkpoint, and what nobody has, because its node left or because it comes from a
// checkpoint, until another node takes it over. It is linear: what two nodes have to say, one may say as
// their sum.
//
// A piece of feedback is one block of the parameters' layout, or two: residual, then velocity.
class FeedbackStore {
 public:
  explicit FeedbackStore(std::shared_ptr<const BlockLayout> layout) : layout_(std::move(layout)) {}

  // Nobody has this any more.
  void take_over(std::span<const float> feedback);
  bool orphaned() const { return !orphan_.empty(); }
  std::vector<float> hand_over() { return std::exchange(orphan_, {}); }

  // A checkpoint waits for what these nodes have. Of those that it waits for already, it is known since when.
  void gather(const std::set<NodeId>& nodes, Instant now);
  // `kept`: the node has nothing to do, and its copy is good for later checkpoints too.
  void gathered(NodeId node, std::span<const float> feedback, bool kept);
  bool has_copy(NodeId node) const { return kept_.contains(node); }
  // It has something else to say now.
  void changed(NodeId node) { kept_.erase(node); }
  // It will not answer.
  void gone(NodeId node);
  bool gathering() const { return !awaited_.empty(); }
  bool awaits(NodeId node) const { return awaited_.contains(node); }
  // Those that were asked and have not answered, with when they were asked.
  const std::map<NodeId, Instant>& awaited() const { return awaited_; }

  // What a checkpoint has of it: all copies, and what nobody has. Good until the next gather().
  std::vector<CheckpointBlock> blocks();
  Status restore(const CheckpointFile& checkpoint);

 private:
  static void add(std::vector<float>& sum, std::span<const float> feedback);

  std::shared_ptr<const BlockLayout> layout_;
  std::vector<float> orphan_;
  std::vector<float> copies_;  // of nodes that work, added up
  std::map<NodeId, std::vector<float>> kept_;
  std::map<NodeId, Instant> awaited_;
};

}  // namespace w5xde
