#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "codec/gradient_policy.h"
#include "coordinator/batches.h"
#include "coordinator/broadcast.h"
#include "coordinator/feedback.h"
#include "coordinator/global_batch.h"
#include "coordinator/learner.h"
#include "coordinator/recorder.h"
#include "coordinator/round.h"
#include "coordinator/run_config.h"
#include "coordinator/session.h"
#include "net/tcp.h"
#include "record/summary.h"

namespace w5xde {

// Owns a run: listens, takes nodes in, leases out slots, adds up what comes back, and commits steps until the
// run is over. Drives the round (which decides) and the learner (which reckons). Loop thread only.
class Coordinator final : private Session::Host {
 public:
  struct Options {
    std::string run;  // its name
    RunConfig config;
    Address listen;
    unsigned nodes_awaited = 1;  // training begins when so many are ready
  };
  // What a run begins or goes on with.
  struct Material {
    CheckpointFile checkpoint;
    std::shared_ptr<const Dataset> data;
    std::shared_ptr<const Dataset> evaluation;  // null: there is none
    std::optional<MappedFile> model_file;
    std::string loss;
  };

  // Listens at once; nodes wait until begin().
  static Result<std::unique_ptr<Coordinator>> listen(AsioLoop& loop, Options options, RunFolder folder,
                                                     const Log& log);
  ~Coordinator() override;

  const Address& address() const { return listener_->address(); }
  Status begin(Material material);

  // Ends the step of which parts are taken, if its nodes go on with it, checkpoints what is committed, says
  // goodbye, and ends.
  void stop(const std::string& reason);

  // How it ended, once it has: ok when the run is finished.
  const std::optional<Status>& outcome() const { return outcome_; }
  bool stopped_early() const { return stopping_; }
  // Some nodes are done with the step, and wait for the others.
  bool step_ends_soon() const { return phase_ == Phase::training && round_->front_ends_soon(); }
  bool nodes_gone() const { return sessions_.empty() && parting_.empty(); }

  Summary summary() const;
  StatusReport status() override;
  // Called when a line about progress is due.
  std::function<void(const StatusReport&)> on_progress;
  // Called just before nodes are sent home: what is to be measured of them must be measured now.
  std::function<void()> on_finishing;

 private:
  enum class Phase { waiting, training, finishing, ended };

  Coordinator(AsioLoop& loop, Options options, RunFolder folder, const Log& log);

  // Session::Host
  const Offer* run_offer() override { return material_ ? &offer_ : nullptr; }
  Bytes model_file() override { return material_->model_file ? material_->model_file->bytes() : Bytes(); }
  const BlockShape& shape() override { return shape_; }
  Reduction::Buffer take_buffer() override { return learner_->take_buffer(); }
  Status ready(Session& session) override;
  Status landing(Session& session, const Contribution& contribution, std::span<float> values,
                 std::uint64_t landed) override;
  Status contributed(Session& session, const Contribution& contribution, Reduction::Buffer values) override;
  Status fed_back(Session& session, bool leaving, std::span<const float> feedback) override;
  void drained(Session& session) override;
  void ended(Session& session, const Error& reason) override;
  void gone(Session& session) override { parting_.erase(session.id()); }

  void accept(std::unique_ptr<Stream> stream);
  void tick();
  void arm_tick();
  void measure_links();
  void measure_link(Session& session);
  double step_seconds(Session& session) const;

  // How things travel (coordinator/transfer.cpp).
  Status begin_transfer(const CheckpointFile& checkpoint);
  Offer make_offer(const Material& material) const;
  OptimizerOptions optimizer_options() const;
  bool nodes_gather_momentum() const;
  std::uint32_t grain() const;
  AnswerForm fixed_answer() const;
  AnswerForm answer_form(const Session& session) const;
  const SectionCodec* codec_down() const { return codec_down_ ? &*codec_down_ : nullptr; }
  bool uses_cache(const Session& session) const;
  Batch batch_for(Session& session, const Grant& grant);
  Status send_parameters(Session& session);
  void choose_gradient_codecs();
  bool calls_newcomers() const;
  void bring_up_to_date();
  std::string in_parts(std::uint64_t floats) const;
  std::string describe_up(const Session& session) const;
  std::string describe_down(const Session& session) const;
  void gather_feedback();
  void hand_over_feedback();
  void feedback_gone(const Session& session);

  void start_training();
  void pump();
  Status send(const Grant& grant);
  void send_newest(Session& session);

  // A step that is taken part by part, while contributions still arrive (coordinator/parts.cpp).
  bool by_parts() const;
  std::vector<Landing> landings() const;
  void forget_landing(NodeId node) { landings_.erase(node); }
  void forget_landings(SlotBlock answered);
  void step_parts();
  void send_ahead(Session& session);

  Status train_answer(Session& session, const Contribution& contribution, Reduction::Buffer values);
  Status evaluation_answer(Session& session, const Contribution& contribution);
  Status bad_answer(Session& session, const Contribution& contribution);
  bool too_stale(const Contribution& contribution) const;
  void tell(Session& session, const Contribution& contribution);

  // Commits wait while a checkpoint is written from the memory that they would change, and while the version
  // at hand is evaluated.
  bool gate_open() const { return !writing_ && !evaluating_; }
  // A run that is stopped begins no step, but ends one of which parts are taken.
  bool may_step() const { return !stopping_ || learner_->next(); }
  void advance();
  void commit_step();
  void commit_async();
  void committed(double loss, std::uint64_t samples, std::uint32_t slots);
  void record_step();

  // How the global batch grows, where it does (coordinator/growth.cpp).
  Status begin_growth(const CheckpointInfo& from);
  void begin_reduction();
  void grow();
  void set_pace();
  void report_growth(Summary& summary) const;
  void report_growth(StatusReport& report) const;

  void begin_evaluation();
  void end_evaluation();
  bool run_over() const;
  void try_finish();
  void write_checkpoint();
  void write_gathered();
  CheckpointInfo info() const;
  void fail(Error error);
  void diverged(std::string_view how);
  void end(Status status);
  void event(const std::string& text);
  double seconds() const;
  std::uint64_t steps_done() const;
  // Nodes that take part in a step; 0: all.
  std::size_t crew() const;

  AsioLoop& loop_;
  Options options_;
  Log log_;
  ThreadPool pool_;
  std::unique_ptr<TcpListener> listener_;
  std::map<NodeId, std::unique_ptr<Session>> sessions_;
  std::map<NodeId, std::unique_ptr<Session>> parting_;  // ended; what was said last is on its way
  NodeId next_node_ = 1;
  Loop::TimerId tick_timer_ = 0;

  std::optional<Material> material_;
  Offer offer_;
  std::unique_ptr<Learner> learner_;
  BlockShape shape_;
  std::uint64_t part_floats_ = 0;  // 0: all travels in one piece
  std::optional<Broadcast> broadcast_;
  std::optional<FeedbackStore> feedback_;
  std::optional<SectionCodec> codec_down_;  // none: whichever pays
  // Where the choice of a lossy codec is ours: of each node's contributions, and of parameters.
  std::map<NodeId, GradientPolicy> gradient_policies_;
  std::map<NodeId, Instant> catching_up_;  // are sent a version before they take part, and since when
  std::optional<GradientPolicy> parameter_policy_;
  double parameter_density_ = 0;
  AnswerForm answer_;  // of nodes whose answers are as the configuration says
  std::optional<Batches> batches_;
  std::optional<Batches> evaluation_batches_;
  std::optional<Round> round_;
  std::optional<Reduction> reduction_;       // sync: of the front step
  std::optional<GlobalBatch> global_batch_;  // where it grows
  std::map<NodeId, Landing> landings_;       // of the front step, each in its session's memory

  Phase phase_ = Phase::waiting;
  std::optional<Status> outcome_;
  bool stopping_ = false;
  bool out_of_time_ = false;
  Instant begun_;  // of training, in this process
  Instant ended_;
  std::size_t crew_at_end_ = 0;
  double seconds_before_ = 0;  // of training, in those before it
  Instant stop_asked_;         // or when what it waits for last went on

  // async: accepted, to be applied when the gate opens.
  struct Waiting {
    Contribution contribution;
    Reduction::Buffer values;
  };
  std::deque<Waiting> waiting_;
  std::map<std::pair<std::uint64_t, SlotBlock>, unsigned> bad_answers_;

  bool evaluating_ = false;
  std::map<std::uint32_t, Contribution> evaluations_;  // by first slot, so that their sum has one order
  std::optional<std::uint64_t> evaluated_version_;
  std::optional<EvaluationStats> evaluation_;
  std::optional<double> best_loss_;

  bool writing_ = false;
  std::optional<std::uint64_t> checkpointed_version_;
  Instant checkpoint_due_;

  // What the summary and the audit say.
  CheckpointInfo counted_;
  std::vector<NodeSummary> left_;  // nodes that are gone, by name
  std::uint64_t nodes_seen_ = 0;
  std::uint64_t nodes_unable_ = 0;  // left because they could not compute a lease
  std::uint64_t batches_here_ = 0;  // committed by this process
  std::string engine_, processor_;
  std::deque<StatusReport::Departure> departures_;

  // Of the steps since the last row in the database.
  RunDatabase::StepRow row_{.steps = 0};
  double row_loss_ = 0;
  std::uint64_t row_batches_ = 0;
  Instant row_since_;
  double batches_per_second_ = 0;
  Instant progress_due_;
  // Goes when the coordinator does: what the recorder's thread posts later asks it first.
  std::shared_ptr<int> alive_ = std::make_shared<int>();

  Recorder recorder_;  // last: its thread must be done before the learner's memory, which it reads, is gone
};

}  // namespace w5xde
