#pragma once

#include <array>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "learn/engine.h"
#include "net/connection.h"
#include "net/loop.h"
#include "node/coded_answers.h"
#include "node/computation.h"
#include "node/machine.h"
#include "node/replica.h"
#include "node/sample_cache.h"
#include "payload/block_encoder.h"
#include "payload/encoding.h"
#include "payload/receiver.h"
#include "payload/sender.h"
#include "wire/enrolment.h"
#include "wire/messages.h"

namespace w5xde {

struct NodeOptions {
  std::string name;
  unsigned threads = 1;  // what the engine library was loaded for
  std::string device = "auto";
  Machine machine;  // whose cores it shares with other nodes
  // Samples are kept in this much memory, where a link is slow.
  std::uint64_t sample_cache_bytes = 256 * kMiB;
  // Models that are files are kept here, by hash.
  std::filesystem::path model_cache;
  std::function<Result<std::unique_ptr<Engine>>(const ModelOptions&, const std::filesystem::path&)>
      make_engine;
  const Clock* clock = nullptr;  // what computing takes is read off it; none: the loop's
};

// One stay in a pool: from hello to goodbye over one connection. Takes leases, computes them in the order in
// which it has their parameters, answers each. The next lease is there before the last one is done, and short
// leases are computed on the loop's own thread: a hop to another would cost more than it gains. Loop thread
// only.
class Node final : private Connection::Owner {
 public:
  Node(Loop& loop, NodeOptions options, const Log& log);
  ~Node() override;

  void start(std::unique_ptr<Stream> stream);

  // Finishes what is being computed, gives back the rest, says goodbye.
  void leave(std::string reason);

  // Why the stay is over, once it is.
  const std::optional<Error>& ended() const { return ended_; }
  // It ended because one of the two said so, not because the link broke: coming again is no use.
  bool parted() const { return parted_; }
  // It has work, and not the parameters for it.
  bool waits_for_parameters() const { return !leases_.empty() && !computing_; }
  std::uint64_t slots_computed() const { return slots_computed_; }

 private:
  struct Pending {
    Lease lease;
    std::shared_ptr<AlignedBuffer> payload;
  };

  Result<MutableBytes> place(const FrameHeader& header, Bytes head) override;
  Status received(const FrameHeader& header, Bytes head, MutableBytes payload) override;
  void closed(const Error& reason) override;
  void gone() override { ended_ = reason_; }

  Result<MutableBytes> place_parameters(const FrameHeader& header, Bytes head);
  Result<MutableBytes> place_feedback(const FrameHeader& header, Bytes head);
  Result<MutableBytes> place_lease(const FrameHeader& header, Bytes head);
  Status check_room_for(std::uint64_t lease_bytes) const;
  Result<MutableBytes> place_model(const FrameHeader& header, Bytes head);
  Status received_hello(Bytes head);
  Status received_offer(Bytes head);
  Status check_offer() const;
  Status received_model();
  Status received_lease(const FrameHeader& header, Bytes head, Bytes payload);
  Status received_feedback(const FrameHeader& header, Bytes head, Bytes payload);
  Status received_verdict(Bytes head);
  // What a model is loaded into, beside the loop: large ones take seconds.
  struct Loaded {
    Status status;
    std::unique_ptr<Engine> engine;
    std::unique_ptr<Computation> computation;
    std::optional<Replica> replica;
  };
  Status load(std::function<Result<std::filesystem::path>()> find_file);
  Status load_into(Loaded& loaded, const ModelOptions& model,
                   const std::function<Result<std::filesystem::path>()>& find_file) const;
  void loaded(Loaded& loaded);
  Status make_ready();
  Status ask_for_model();
  Ready about_this(std::uint64_t fingerprint) const;
  std::uint32_t lanes_at_most() const;
  void warm_up(Loaded& loaded) const;
  Status send_cold(FrameType type, const Head& head);

  bool computable(const Lease& lease) const;
  void compute_next();
  void compute(Pending pending);
  void computed(const Lease& lease, Result<Computed> result);
  Status answer(const Lease& lease, Computed& result);
  Status send_floats(Contribution contribution, const Encoding& how, Reduction::Buffer values);
  Formed form_answer(const Encoding& how, const Contribution& contribution, std::span<const float> block);
  Status answer_void(const Lease& lease);
  Status send_feedback(std::span<const float> floats, bool leaving);
  void end_leave();

  std::uint64_t wait_until_now();
  std::uint64_t codec_until_now();

  Loop& loop_;
  NodeOptions options_;
  const Clock& clock_;
  Log log_;
  std::shared_ptr<Connection> connection_;
  Limits limits_;
  std::optional<Error> reason_;  // it is ending
  std::optional<Error> ended_;
  bool parted_ = false;
  std::optional<std::string> leaving_;

  bool offered_ = false;
  Offer offer_;
  std::unique_ptr<Engine> engine_;
  std::uint32_t lanes_max_ = 1;  // for which there are cores and memory
  std::unique_ptr<Computation> computation_;
  std::optional<BlockEncoder> encoder_;
  std::optional<CodedAnswers> coded_answers_;
  std::vector<LosslessPolicy> policies_;  // of contributions, one for each part
  PayloadSender sender_;
  PayloadReceiver receiver_;
  AlignedBuffer feedback_;        // another node's, arriving
  std::uint32_t taken_over_ = 0;  // how many of those it has added to its own

  // The model's file while it arrives.
  std::vector<std::byte> model_bytes_;
  std::uint64_t model_received_ = 0;

  std::optional<Replica> replica_;
  SampleCache samples_;
  Pending arriving_;
  std::deque<Pending> leases_;
  bool computing_ = false;
  Duration coding_ = Duration::zero();  // in gradient codecs
  std::uint64_t version_computed_ = 0;  // with which the last lease was computed
  bool compute_posted_ = false;
  std::optional<Instant> waiting_since_;
  std::uint64_t wait_ns_ = 0;               // since the last contribution
  Duration codec_told_ = Duration::zero();  // of the codecs' time, what contributions have told
  // What a slot takes in one lane, by the kind of work, as the last lease of it did: short leases are
  // computed right here.
  std::array<std::optional<double>, 2> slot_seconds_;
  std::uint64_t slots_computed_ = 0;
  Head head_;

  // Memory of contributions that are written; shared with the frames that will give theirs back.
  std::shared_ptr<std::vector<Reduction::Buffer>> returned_;
  std::unique_ptr<Background> background_;  // for leases that take long
  // Goes when the node does: what comes back to the loop later asks it first.
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace w5xde
