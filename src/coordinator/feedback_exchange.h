#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "coordinator/codec_choice.h"
#include "coordinator/feedback.h"
#include "coordinator/sessions.h"
#include "lease/roster.h"

namespace w5xde {

// The error feedback of lossy codecs, between the nodes that have it, the checkpoints that need a copy, and
// the nodes that take over from others. Loop thread only.
class FeedbackExchange {
 public:
  FeedbackExchange(const Clock& clock, Sessions& sessions) : clock_(clock), sessions_(sessions) {}

  Status resume(const CheckpointFile& from, std::shared_ptr<const BlockLayout> layout);

  // Asks nodes for a copy, for a checkpoint of the version at hand. The request comes before the parameters
  // of the version after. Nodes that have rested since the last one are not asked again: feedback is as large
  // as the model.
  void gather();
  bool gathering() const { return store_->gathering(); }
  // A checkpoint does not wait for a node longer than its link could need, several times over.
  void drop_silent();
  // What the checkpoint has of it. Good until the next gather().
  std::vector<NamedBlock> blocks() const { return store_->blocks(); }

  // A node sent what it has. `kept`: it has nothing to do, and its copy is good for later checkpoints too.
  Status received(Session& session, const Feedback& about, std::span<const float> feedback, bool kept);
  // A contribution of this node counts: its copy is from before.
  void changed(NodeId node) { store_->changed(node); }
  // The node has left, and what it did not send is lost.
  void gone(NodeId node) { store_->gone(node); }

  // What nobody has any more goes to a node that works.
  void hand_over(const Roster& roster, const CodecChoice& codecs);

 private:
  const Clock& clock_;
  Sessions& sessions_;
  std::optional<FeedbackStore> store_;
  std::uint64_t bytes_max_ = 0;  // of one node
};

}  // namespace w5xde
