#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/shared_memory.h"
#include "coordinator/codec_choice.h"
#include "coordinator/lease_samples.h"
#include "coordinator/sessions.h"
#include "coordinator/training.h"
#include "lease/round.h"
#include "versions/broadcast.h"

namespace w5xde {

// How things travel between the coordinator and its nodes: who is sent which version of the parameters and
// when, with which codecs, and what that costs over each link. Loop thread only.
class Transfers {
 public:
  // What it works with. All of them outlive it.
  struct Pool {
    Loop& loop;
    const RunConfig& config;
    Sessions& sessions;
    Training& training;
    Round& round;
    LeaseSamples& samples;
    ThreadPool* threads;
    bool shares_memory;  // with nodes of this machine that can
  };
  Transfers(const Pool& pool, const BlockShape& shape);
  // What nodes were shown by a lossy codec when this was saved.
  Status resume(const CheckpointFile& from);

  const CodecChoice& codecs() const { return codecs_; }
  const SharedProbe* memory_probe() const { return probe_ ? &*probe_ : nullptr; }
  void forget(NodeId node);

  // Those of the leases whose samples are here. The others wait, in their order for each node, and come with
  // a later call; those that are void meanwhile never do.
  std::vector<Grant> with_samples(const std::vector<Grant>& leased);
  // The samples of a lease, as this node needs them. An error is the data's.
  Result<Batch> make_batch(Session& session, const Grant& grant);
  // A lease, and before it the parameters that it is computed with, where the node lacks them.
  Status send_lease(Session& session, const Grant& grant, Batch batch);
  // The learner's version, to nodes that have leases of it already; and what there is of the next. Nothing
  // piles up for a node that has not taken what it was sent before: it gets the newest when it has.
  void send_newest(Session& session);
  void send_newest_to_all();
  void send_ahead(Session& session);
  void send_ahead_to_all();

  // With lossy codecs a newcomer is sent far more than those who have the version before, and what its link
  // carries is not known before: it catches up while the others go on.
  bool newcomers_catch_up() const;
  void bring_up_to_date();

  // Codecs, from what the links carry and what the nodes compute now.
  void choose_codecs();
  // Tells the round what exchanges and steps cost over the links; and over this one.
  void measure_links();
  void measure_link(Session& session);
  double swap_in_seconds(Session& session) const;
  // Of an answer on this link.
  double answer_bytes(const Session& session) const {
    return shares_up(session) ? 0 : session.answer_bytes();
  }

  Broadcast& broadcast() { return broadcast_; }
  // What nodes are shown must not change while a checkpoint is written; and what the checkpoint has of it.
  void freeze() { broadcast_.show(learner()); }
  std::vector<NamedBlock> blocks() const;

  // Nodes compute with what they are shown, which a lossy codec makes differ from the parameters. Between
  // these two they are sent the parameters themselves; afterwards they go back to what they were shown, so
  // that the run has the same bits whether it was judged or not. No lease of a step is out meanwhile.
  void begin_exact();
  void end_exact();
  bool exact() const { return exact_ || broadcast_.shown().empty(); }

 private:
  const Learner& learner() const { return pool_.training.learner(); }
  bool uses_cache(const Session& session) const;
  bool shares_down(const Session& session) const {
    return session.shares_memory() && codecs_.may_share_down() && learner().state_is_shared();
  }
  bool shares_up(const Session& session) const {
    return session.shares_memory() && codecs_.may_share_up(session.id());
  }
  Status send_parameters(Session& session);
  double step_seconds(Session& session) const;

  Pool pool_;
  BlockShape shape_;
  CodecChoice codecs_;
  std::optional<SharedProbe> probe_;
  Broadcast broadcast_;
  std::optional<Broadcast> exact_;
  std::vector<Grant> waiting_;             // leases whose samples are being gathered
  std::map<NodeId, Instant> catching_up_;  // are sent a version before they take part, and since when
};

}  // namespace w5xde
