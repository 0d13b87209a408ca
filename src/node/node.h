#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "net/connection.h"
#include "net/loop.h"
#include "node/answer_sender.h"
#include "node/computation.h"
#include "node/coordinator_memory.h"
#include "node/enrolment.h"
#include "node/sample_cache.h"
#include "payload/encoding.h"
#include "payload/receiver.h"
#include "payload/sender.h"
#include "wire/messages.h"

namespace w5xde {

// One stay in a pool: from hello to goodbye over one connection. Computes leases in the order in which it has
// their parameters, short ones on the loop's own thread, and answers each. Loop thread only.
class Node final : private Connection::Owner {
 public:
  Node(Loop& loop, NodeOptions options, const Log& log);
  ~Node() override;

  void start(std::unique_ptr<Stream> stream);

  // Finishes what is being computed, gives back the rest, says goodbye.
  void leave(std::string reason);

  // Why the stay is over, once it is.
  const std::optional<Error>& ended() const { return ended_; }
  // One of the two sides ended it and the link did not break, so connecting again is of no use.
  bool parted() const { return parted_; }
  // It has a lease, but not the parameters for it.
  bool waits_for_parameters() const { return !leases_.empty() && activity_ != Activity::computing; }
  std::uint64_t slots_computed() const { return slots_computed_; }
  // The run's name; empty before the coordinator has offered it.
  const std::string& run() const { return enrolment_.offer().run; }

 private:
  enum class Activity {
    idle,
    choosing,  // a task is posted that chooses the next lease
    computing,
  };
  struct Pending {
    Lease lease;
    std::shared_ptr<AlignedBuffer> payload;
    CoordinatorMemory::Block answer = nullptr;  // where a shared answer belongs
  };

  Result<MutableBytes> place(const FrameHeader& header, Bytes head) override;
  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override;
  void closed(const Error& reason) override;
  void gone() override { ended_ = reason_; }

  void enrolled(LoadedModel model);
  Result<MutableBytes> place_parameters(const FrameHeader& header, Bytes head);
  void prepare_for_large_model(std::uint32_t buffers);
  Status received_shared_parameters(Bytes head);
  Result<MutableBytes> place_lease(const FrameHeader& header, Bytes head);
  Status check_room_for(std::uint64_t lease_bytes) const;
  Status received_lease(const FrameHeader& header, Bytes head, Bytes payload);
  Status received_verdict(Bytes head);

  bool computable(const Lease& lease) const;
  void compute_next();
  void choose_lease();
  void compute(Pending pending);
  void computed(const Lease& lease, Result<Computed> result);
  Status answer(const Lease& lease, Computed& result);
  Status answer_void(const Lease& lease);
  void end_leave();
  std::uint64_t take_wait_ns();

  Loop& loop_;
  const NodeOptions options_;
  const Clock& clock_;
  const Limits limits_;
  std::unique_ptr<Background> background_;  // loads models, computes long leases
  std::shared_ptr<Connection> connection_;
  std::optional<Error> reason_;  // it is ending
  std::optional<Error> ended_;
  bool parted_ = false;
  std::optional<std::string> leaving_;

  Enrolment enrolment_;
  LoadedModel model_;  // empty until the node is enrolled
  PayloadReceiver receiver_;
  std::optional<AnswerSender> answers_;  // none until the node is enrolled
  SampleCache samples_;
  CoordinatorMemory memory_;

  Pending arriving_;
  std::deque<Pending> leases_;
  Activity activity_ = Activity::idle;
  std::uint64_t version_computed_ = 0;  // with which the last lease was computed
  std::optional<Instant> waiting_since_;
  std::uint64_t wait_ns_ = 0;  // before the lease that is computed
  // The last lease's time for a slot in one lane, by the kind of work: short leases are computed on the loop.
  std::array<std::optional<double>, 2> slot_seconds_;
  std::uint64_t slots_computed_ = 0;
  // Goes when the node does: tasks on the loop check it first.
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace w5xde
