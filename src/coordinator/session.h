#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/shared_memory.h"
#include "coordinator/access_control.h"
#include "coordinator/admission.h"
#include "coordinator/arriving_contribution.h"
#include "coordinator/batches.h"
#include "coordinator/kept_samples.h"
#include "coordinator/leases_out.h"
#include "learn/learner.h"
#include "lease/round.h"
#include "net/connection.h"
#include "payload/encoding.h"
#include "payload/form.h"
#include "payload/receiver.h"
#include "payload/sender.h"
#include "record/guest_list.h"
#include "versions/broadcast.h"
#include "wire/status.h"

namespace w5xde {

// A peer's address without its port.
std::string host_of(const Stream& stream);

// One peer of the coordinator: a node from hello to goodbye, or an observer. Knows bytes and the order in
// which things are said; what to say, and what answers mean, is its host's business. A peer that does not
// become ready in time is dropped. Loop thread only.
class Session final : private Connection::Owner {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    // What the run is; none while that is not known yet (offer() is called then).
    virtual const Offer* run_offer() = 0;
    virtual Bytes model_file() = 0;
    virtual const BlockShape& shape() = 0;
    virtual Reduction::Buffer take_buffer() = 0;
    // Finds out whether a node of this machine shares memory with this process; null: nothing is shared.
    virtual const SharedProbe* memory_probe() = 0;
    // The node can work.
    virtual Status ready(Session& session) = 0;
    // The first `landed` floats of a contribution are in `values`; the others follow.
    virtual Status landing(Session& session, const Contribution& contribution, std::span<float> values,
                           std::uint64_t landed) = 0;
    // `values` is null when the contribution has none; of a void lease, they are memory to be used again.
    virtual Status contributed(Session& session, const Contribution& contribution,
                               Reduction::Buffer values) = 0;
    // What the node's codec has still to say: a copy that was asked for, or all of it because it leaves.
    virtual Status fed_back(Session& session, const Feedback& about, std::span<const float> feedback) = 0;
    virtual StatusReport status() = 0;
    // Who decides whether a peer may come in; null: everybody may.
    virtual AccessControl* access() { return nullptr; }
    // The connection took all that was queued.
    virtual void drained(Session& session) = 0;
    // The peer has no part in anything any more.
    virtual void ended(Session& session, const Error& reason) = 0;
    // What was said last has reached it, as far as can be known: the session may be destroyed.
    virtual void gone(Session& session) = 0;
  };

  Session(NodeId id, Host& host, std::unique_ptr<Stream> stream, const SocketOptions& socket,
          ThreadPool* pool, const Log& log);
  ~Session() override;

  NodeId id() const { return id_; }
  bool is_ready() const { return admission_.stage() == Admission::Stage::ready; }
  // It has said hello, and not as an observer.
  bool is_node() const { return admission_.stage() != Admission::Stage::silent && admission_.is_node(); }
  const std::string& name() const { return admission_.hello().name; }
  const Ready& about() const { return admission_.about(); }
  const std::string& peer() const { return peer_; }
  // It is on this machine.
  bool is_local() const { return peer_.starts_with("127.") || peer_.starts_with("[::1]"); }
  // Its process sees blocks of this one's memory.
  bool shares_memory() const { return !about().memory_token.empty(); }
  // Stays the same when the node leaves and comes back.
  std::string identity() const { return fmt::format("{}, machine {}", name(), about().machine); }
  // The peer without its port.
  const std::string& host() const { return host_name_; }
  const Connection& connection() const { return *connection_; }

  // Sends the offer, once the hello is in.
  void offer();
  // The learner's version. Without a codec, with the one that pays.
  Status send_parameters(const Learner& learner, Broadcast& broadcast, const SectionCodec* codec);
  // The learner's version, to a node that shares memory: it reads what the learner has.
  Status share_parameters(const Learner& learner);
  // What there is of the next one.
  Status send_ahead(const Learner& learner, Broadcast& broadcast, const SectionCodec* codec);
  std::uint64_t version_sent() const { return sent_.version; }
  // Whatever it has, it gets the next version whole.
  void forget_version() { sent_ = {}; }

  struct LeaseForm {
    bool generic = false;
    const SectionCodec* codec = nullptr;  // none: the one that pays
    Encoding answer;
    Learner::State state = nullptr;      // that the node reads where it is, if that is known already
    Reduction::Buffer memory = nullptr;  // into which it writes a shared answer
  };
  Status send_lease(const Grant& grant, std::uint64_t version, std::uint64_t seed, Batch batch,
                    LeaseForm form);
  KeptSamples& kept() { return kept_; }

  // Every number of the contribution that is arriving is finite, as far as it is here.
  bool arriving_finite() const { return arriving_.finite(); }

  // Its codec has a memory that would be lost with it.
  bool has_feedback() const { return has_feedback_; }
  // It has said so, or the connection is closed.
  bool is_leaving() const { return leaving_ || !connection_->open(); }
  Status ask_feedback();
  // Whether its answer to this lease counts. Its codec's feedback depends on it.
  Status send_verdict(LeaseId lease, bool counted);
  Status send_feedback(std::span<const float> feedback);
  // The oldest lease that it has not answered.
  std::optional<LeasesOut::Slots> oldest_lease() const { return leases_.oldest(); }
  // It has leases that it can do nothing with (compute, or find void) before it has this version.
  bool awaits(std::uint64_t version) const { return sent_.version != version && leases_.await(version); }
  bool has_lease_of(std::uint64_t version) const { return leases_.has_one_of(version); }
  double outgoing_bytes_per_second() { return connection_->outgoing_bytes_per_second(); }
  // The lossless codecs in use, and how much less they make of it.
  std::string describe_up() const { return arriving_.describe(host_.shape()); }
  std::string describe_down() const;
  // Bytes before their lossless codecs, by bytes after, both ways; NaN while nothing has travelled.
  double compression_ratio() const;
  void close(Error reason) { connection_->close(std::move(reason)); }
  // What it was to be sent could not be.
  void close_unless(Status sent) {
    if (!sent.ok()) close(std::move(sent).error());
  }

  // Of its answers on the link, by the last ones.
  double answer_bytes() const;
  // What a lease and its answer cost beside the computing, as far as is known of the link.
  double exchange_seconds(double answer_bytes) const;
  // What a step costs it beside the computing: a version of `version_bytes` there, a contribution back, one
  // after the other or both at once.
  double step_seconds(double version_bytes, double answer_bytes, bool overlaps);

 private:
  Result<MutableBytes> place(const FrameHeader& header, Bytes head) override;
  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override;
  void drained() override;
  void closed(const Error& reason) override;
  void gone() override { host_.gone(*this); }

  Status received_hello(Bytes head);
  Status received_proof(Bytes head);
  void let_in(Role role);
  Status received_ready(Bytes head);
  Status received_status_question();
  Status check_contribution(const Contribution& contribution) const;
  Result<MutableBytes> place_contribution(const FrameHeader& header, Bytes head);
  Status check_feedback(const Feedback& feedback) const;
  Result<MutableBytes> place_feedback(const FrameHeader& header, Bytes head);
  Status received_contribution(const FrameHeader& header, Bytes head, MutableBytes payload);
  Status received_feedback(const FrameHeader& header, Bytes head, Bytes payload);
  Status send_model();
  void watch();

  const NodeId id_;
  Host& host_;
  Loop& loop_;
  Log log_;
  const std::string peer_;
  const std::string host_name_;
  std::shared_ptr<Connection> connection_;
  Admission admission_;
  bool status_due_ = false;        // was asked for while it could not be sent
  Loop::TimerId watch_timer_ = 0;  // until it is ready
  Limits limits_;
  std::vector<LosslessPolicy> parameter_policies_;  // one for each part
  LosslessPolicy lease_policy_;
  PayloadSender sender_;
  PayloadReceiver receiver_;
  ArrivingContribution arriving_;
  AlignedBuffer feedback_;  // arriving
  bool has_feedback_ = false;
  bool leaving_ = false;
  bool may_hand_over_ = false;   // it was given feedback, or a lossy codec, and may leave with some
  unsigned feedback_asked_ = 0;  // times, not answered yet
  KeptSamples kept_;
  SentVersion sent_;
  LeasesOut leases_;
  Head head_;
};

}  // namespace w5xde
