#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "lease/ledger.h"
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

  // The node leaves, and nobody has this any more. A checkpoint that waits for the node's copy has it in
  // this. `taken_over` says how many pieces that it was handed are in it.
  void take_over(NodeId node, std::span<const float> feedback, std::uint32_t taken_over = 0);
  bool orphaned() const { return !orphan_.empty(); }
  // One piece at a time: not before it is known that the last has arrived.
  bool may_hand_over_to(NodeId heir) const;
  // Good until the heir answers or goes.
  std::span<const float> hand_over(NodeId heir);

  // A checkpoint is of now: it has what is here, and waits for what these nodes have. What others say from
  // now on is of later steps, and not in it. Of nodes that it waits for already, it is known since when.
  void gather(const std::set<NodeId>& nodes, Instant now);
  // `kept`: the node has nothing to do, and its copy is good for later checkpoints too.
  void gathered(NodeId node, std::span<const float> feedback, bool kept);
  bool has_copy(NodeId node) const { return kept_.contains(node); }
  // It has something else to say now.
  void changed(NodeId node);
  // It will not answer.
  void gone(NodeId node);
  bool gathering() const { return !awaited_.empty(); }
  bool awaits(NodeId node) const { return awaited_.contains(node); }
  // Those that were asked and have not answered, with when they were asked.
  const std::map<NodeId, Instant>& awaited() const { return awaited_; }

  // What the checkpoint has of it. Good until the next gather().
  std::vector<NamedBlock> blocks() const;
  Status restore(const CheckpointFile& checkpoint);

 private:
  static void add(std::vector<float>& sum, std::span<const float> feedback);

  std::shared_ptr<const BlockLayout> layout_;
  std::vector<float> orphan_;
  std::vector<float> gathered_;  // for a checkpoint, added up
  std::map<NodeId, std::vector<float>> kept_;
  std::map<NodeId, Instant> awaited_;
  std::set<NodeId> moved_on_;  // of those awaited: their copy, when it comes, is from before
  // The last piece that a node was handed, until it is known that the node has it, and how many those were.
  struct Handed {
    std::vector<float> piece;
    std::uint32_t number = 0;
  };
  std::map<NodeId, Handed> handed_;
};

}  // namespace w5xde
