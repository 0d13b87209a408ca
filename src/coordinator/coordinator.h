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
#include "coordinator/answer_checks.h"
#include "coordinator/checkpoints.h"
#include "coordinator/codec_choice.h"
#include "coordinator/evaluations.h"
#include "coordinator/lease_samples.h"
#include "coordinator/recorder.h"
#include "coordinator/session.h"
#include "coordinator/tally.h"
#include "learn/learner.h"
#include "learn/step_in_progress.h"
#include "lease/round.h"
#include "net/listener.h"
#include "run/run_config.h"
#include "versions/broadcast.h"

namespace w5xde {

// Owns a run: listens, takes nodes in, leases out slots, adds up what comes back, and commits steps until the
// run is over. Drives the round (which decides) and the learner (which reckons). Loop thread only.
class Coordinator final : private Session::Host {
 public:
  // Adding up, checking and stepping this many floats takes some milliseconds.
  static constexpr std::uint64_t kInlineFloats = 1024 * 1024;

  struct Options {
    std::string run;  // its name
    RunConfig config;
    unsigned nodes_awaited = 1;                   // training begins when this many are ready
    unsigned threads = 0;                         // for heavy work, beside the loop's own
    std::uint64_t inline_floats = kInlineFloats;  // more are added up and stepped beside the loop
    Recorder::Database database = Recorder::Database::kept;
    // A checkpoint that cannot be written is tried again after this time, then after twice that, and so on:
    // five times, about half a minute in all. Then the run fails.
    Duration checkpoint_retry = std::chrono::seconds(1);
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
  static Result<std::unique_ptr<Coordinator>> start(Loop& loop, const Listen& listen, Options options,
                                                    RunFolder folder, const Log& log);
  ~Coordinator() override;

  const Address& address() const { return listener_->address(); }
  Status begin(Material material);

  // Ends the step of which parts are taken, if its nodes go on with it, checkpoints what is committed, says
  // goodbye, and ends.
  void stop(const std::string& reason);

  // How it ended, once it has: ok when the run is finished.
  const std::optional<Status>& outcome() const { return outcome_; }
  bool stopped_early() const { return stop_asked_.has_value(); }
  // Some nodes are done with the step, and wait for the others.
  bool step_ends_soon() const { return running() && round_->front_ends_soon(); }
  // Every peer has closed its end, or is not waited for any longer.
  bool nodes_gone() const;

  // Whether its books balance and its queues are within their bounds. For tests.
  Status check_books() const;

  Summary summary() const;
  StatusReport status() override;
  // Called when a line about progress is due.
  std::function<void(const StatusReport&)> on_progress;
  // Called just before nodes are sent home, beside the loop: what is to be measured of them must be measured
  // now.
  std::function<void()> on_finishing;

 private:
  // What may happen when. Evaluations and checkpoints have states of their own: both may be in progress at
  // once, while a run trains, closes or stops.
  //
  //   waiting     for nodes. → training: enough are ready, or nothing is left to do. → finishing: stopped
  //   training    steps are begun. → closing, stopping, finishing
  //   closing     out of time, or the target is in sight: no step is begun, those that are open are
  //               committed. → training: the target was missed, and time is left. → stopping, finishing
  //   stopping    it was asked to: a step that must end is ended, what is committed is saved.
  //               → abandoning, finishing
  //   abandoning  async: nodes did not finish what they hold in time, and nobody waits for it. → finishing
  //   finishing   what is to be measured of nodes is measured. → ended
  //   ended       nodes are sent home, and there is an outcome
  enum class Phase { waiting, training, closing, stopping, abandoning, finishing, ended };
  bool stopping() const { return phase_ == Phase::stopping || phase_ == Phase::abandoning; }
  // No step is begun any more: the run is over when those that are open are committed.
  bool ending() const { return phase_ == Phase::closing || stopping(); }
  bool running() const { return phase_ == Phase::training || ending(); }
  bool over() const { return phase_ == Phase::finishing || phase_ == Phase::ended; }
  bool out_of_time() const {
    return options_.config.seconds > 0 && tally_.seconds() >= options_.config.seconds;
  }

  Coordinator(Loop& loop, Options options, RunFolder folder, const Log& log);

  // Session::Host
  const Offer* run_offer() override { return material_ ? &offer_ : nullptr; }
  Bytes model_file() override { return material_->model_file ? material_->model_file->bytes() : Bytes(); }
  const BlockShape& shape() override { return shape_; }
  Reduction::Buffer take_buffer() override { return learner_->take_buffer(); }
  Status ready(Session& session) override;
  Status landing(Session& session, const Contribution& contribution, std::span<float> values,
                 std::uint64_t landed) override;
  Status contributed(Session& session, const Contribution& contribution, Reduction::Buffer values) override;
  Status fed_back(Session& session, const Feedback& about, std::span<const float> feedback) override;
  void drained(Session& session) override;
  void ended(Session& session, const Error& reason) override;
  void gone(Session& session) override { parting_.erase(session.id()); }

  void accept(std::unique_ptr<Stream> stream);
  bool has_room_for(const Stream& newcomer) const;
  void tick();
  void arm_tick();
  void measure_links();
  void measure_link(Session& session);
  double step_seconds(Session& session) const;
  double swap_in_seconds(Session& session) const;

  // How things travel (coordinator/transfer.cpp).
  Status begin_transfer(const CheckpointFile& checkpoint);
  Offer make_offer(const Material& material) const;
  bool uses_cache(const Session& session) const;
  Status send_parameters(Session& session);
  void choose_codecs();
  bool calls_newcomers() const;
  void bring_up_to_date();
  void gather_feedback();
  void hand_over_feedback();
  void drop_silent();
  void feedback_gone(const Session& session);
  void write_once_gathered();

  void start_training();
  void pump();
  Status send(const Grant& grant);
  void send_newest(Session& session);

  // A step that is taken part by part, while contributions still arrive (coordinator/parts.cpp).
  void step_parts();
  void step_more_parts();
  void send_ahead(Session& session);

  // A contribution of which it is not known yet whether it counts.
  struct Arrived {
    NodeId node = 0;
    Contribution contribution;
    Reduction::Buffer values;
    bool finite = true;
  };
  // Large ones one after the other.
  void check(Arrived arrived);
  void answered(Arrived arrived);
  void add_up(const Contribution& contribution, Reduction::Buffer values);
  Status train_answer(Session& session, Arrived& arrived);
  // True: it counts.
  Result<bool> take_answer(Session& session, Arrived& arrived);
  Status evaluation_answer(Session& session, const Contribution& contribution);
  Status bad_answer(Session& session, const Contribution& contribution);
  void drop_refuted(const Session& session, const Contribution& contribution);
  bool nobody_can(const Session& session, const Error& reason);
  bool too_stale(const Contribution& contribution) const;

  // Commits wait while a checkpoint is written from the memory that they would change, and while the version
  // at hand is evaluated.
  bool gate_open() const { return !checkpoints_.in_progress() && !evaluations_.in_progress(); }
  // A run that is stopped begins no step, but ends one of which parts are taken.
  bool may_step() const { return !stopping() || step_must_end(); }
  // The step at hand cannot be left: parts of it are taken, or error feedback is of that step by now, with a
  // node that has begun with it or here, from one that has left since.
  bool step_must_end() const {
    return learner_->next() || step_.has_changed_feedback() || (step_.is_out() && nodes_hold_feedback());
  }
  bool nodes_hold_feedback() const;
  void advance();
  // Work on as many floats: right here, or beside the loop where they are many. Until `then` has run, nobody
  // else touches the learner, the reduction and what nodes are shown (busy_).
  void heavy(std::uint64_t floats, const std::function<void()>& work, const std::function<void()>& then);
  void go_on();
  struct Commit {
    Reduction::Buffer sum;
    Sums sums;
    bool applied = false;
  };
  void commit_step();
  void finish_step(const Commit& commit);
  void commit_async();
  void commit_waiting();
  void committed(const Tally::Commit& commit);
  Tally::Progress progress() const;
  NodeTraffic traffic_of(const Session& session) const;
  void record_standing(NodeId id);

  // How the global batch grows, where it does (coordinator/growth.cpp).
  Status begin_growth(const CheckpointInfo& from);
  void begin_step();
  void grow();
  void set_pace();
  void report_growth(Summary& summary) const;
  void report_growth(StatusReport& report) const;

  void begin_evaluations(const Material& material);
  void begin_evaluation(Evaluations::Kind kind);
  void begin_deciding_evaluation();
  void end_evaluation();
  void leave_evaluation();
  void close_run();
  void follow_target(Evaluations::Target target);
  bool run_over() const;
  void try_finish();
  void write_checkpoint();
  void write_gathered();
  CheckpointInfo info() const;
  void fail(Error error);
  void fail_diverged(std::string_view how);
  void end(Status status);
  void conclude(Status status);
  std::uint64_t steps_done() const;
  // Nodes that take part in a step; 0: all.
  std::size_t working() const;

  Loop& loop_;
  Options options_;
  Log log_;
  ThreadPool pool_;
  std::unique_ptr<Listener> listener_;
  std::map<NodeId, std::unique_ptr<Session>> sessions_;
  std::map<NodeId, std::unique_ptr<Session>> parting_;  // ended; what was said last is on its way
  NodeId next_node_ = 1;
  Loop::TimerId tick_timer_ = 0;

  std::optional<Material> material_;
  Offer offer_;
  std::unique_ptr<Learner> learner_;
  BlockShape shape_;
  CodecChoice codecs_;
  std::optional<Broadcast> broadcast_;
  std::map<NodeId, Instant> catching_up_;  // are sent a version before they take part, and since when
  std::unique_ptr<LeaseSamples> samples_;
  std::optional<Round> round_;
  StepInProgress step_;  // sync: the front step

  Phase phase_ = Phase::waiting;
  std::optional<Status> outcome_;
  std::size_t working_at_end_ = 0;
  std::optional<Instant> stop_asked_;  // or when what it waits for last went on

  // async: accepted, to be applied when the gate opens.
  struct Waiting {
    Contribution contribution;
    Reduction::Buffer values;
  };
  std::deque<Waiting> waiting_;

  bool busy_ = false;
  std::deque<Arrived> arrived_;  // while it is
  Loop::TimerId parts_timer_ = 0;
  AnswerChecks checks_;

  Evaluations evaluations_;
  // An evaluation that decides is of the parameters that would be saved. Where nodes were shown others, they
  // are sent these for as long as it takes.
  std::optional<Broadcast> exact_broadcast_;

  Tally tally_;
  Checkpoints checkpoints_;
  std::unique_ptr<Background> background_;
  Recorder recorder_;  // last: it must be done before the learner's memory, which it reads, is gone
};

}  // namespace w5xde
