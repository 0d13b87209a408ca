#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/errors.h"
#include "base/file.h"
#include "base/log.h"
#include "coordinator/access_control.h"
#include "coordinator/answers.h"
#include "coordinator/checkpoints.h"
#include "coordinator/evaluations.h"
#include "coordinator/feedback_exchange.h"
#include "coordinator/lease_samples.h"
#include "coordinator/recorder.h"
#include "coordinator/run_report.h"
#include "coordinator/run_setup.h"
#include "coordinator/sessions.h"
#include "coordinator/tally.h"
#include "coordinator/training.h"
#include "coordinator/transfers.h"
#include "lease/round.h"
#include "net/stream.h"
#include "run/run_config.h"

namespace w5xde {

// Owns a run: listens, takes nodes in, leases out slots, adds up what comes back, and commits steps until the
// run is over. It decides what may happen when; others do it:
//
//   sessions    the peers (coordinator/sessions.h)
//   round       who computes what (lease/round.h)
//   training    contributions become versions (coordinator/training.h)
//   answers     whether a contribution counts (coordinator/answers.h)
//   transfers   who is sent which version, how, at what cost (coordinator/transfers.h)
//   feedback    what lossy codecs have still to say (coordinator/feedback_exchange.h)
//
// Loop thread only.
class Coordinator final : private Session::Host, private Training::Host {
 public:
  // Adding up, checking and stepping this many floats takes some milliseconds.
  static constexpr std::uint64_t kInlineFloats = 1024 * 1024;
  // How long peers have to hear the last word when the run has ended.
  static constexpr auto kFarewellPatience = std::chrono::seconds(30);

  struct Options {
    std::string run;  // its name
    RunConfig config;
    unsigned nodes_awaited = 1;                   // training begins when this many are ready
    unsigned threads = 0;                         // for heavy work, beside the loop's own
    std::uint64_t inline_floats = kInlineFloats;  // more are added up and stepped beside the loop
    AccessControl* access = nullptr;              // who may come in, and outlives this; null: everybody
    // Smaller models cross sockets, on this machine too.
    std::uint64_t shared_bytes_min = kSharedBytesMin;
    Recorder::Database database = Recorder::Database::kept;
    // A checkpoint that cannot be written is tried again after this time, then after twice that, and so on:
    // five times, about half a minute in all. Then the run fails.
    Duration checkpoint_retry = std::chrono::seconds(1);
  };
  // Listens at once; nodes wait until begin().
  static Result<std::unique_ptr<Coordinator>> start(Loop& loop, const Listen& listen, Options options,
                                                    RunFolder folder, const Log& log);
  ~Coordinator() override { loop_.cancel(tick_timer_); }

  const Address& address() const { return listener_->address(); }
  Status begin(RunMaterial material);

  // Ends the step of which parts are taken, if its nodes go on with it, checkpoints what is committed, says
  // goodbye, and ends.
  void stop(const std::string& reason);

  // How it ended, once it has: ok when the run is finished.
  const std::optional<Status>& outcome() const { return outcome_; }
  bool stopped_early() const { return stopped_early_; }
  // Some nodes are done with the step, and wait for the others.
  bool step_ends_soon() const { return running() && round_->front_ends_soon(); }
  // Every peer has closed its end, or is not waited for any longer.
  bool nodes_gone() const {
    return sessions_.empty() || (outcome_ && loop_.now() - tally_.ended() >= kFarewellPatience);
  }

  // Whether its books balance and its queues are within their bounds. For tests.
  Status check_books() const {
    if (round_ && !round_->imbalance().empty()) return corrupt(round_->imbalance());
    if (training_.step().landings() > sessions_.size())
      return corrupt("contributions land for nodes that are gone");
    return sessions_.check_bounds();
  }

  Summary summary() const { return report().summary(); }
  StatusReport status() override;
  AccessControl* access() override { return options_.access; }
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
  //   training    steps are begun. → closing, settled, stopping, finishing
  //   closing     out of time, the target is in sight, or patience is over: no step is begun, those that are
  //               open are committed. → training: the target was missed, and time is left. → settled,
  //               stopping, finishing
  //   settled     sync: the version at hand is the last: open steps are dropped. → stopping, finishing
  //   stopping    it was asked to: a step that must end is ended, what is committed is saved.
  //               → abandoning, finishing
  //   abandoning  async: nodes did not finish what they hold in time, and nobody waits for it. → finishing
  //   finishing   what is to be measured of nodes is measured. → ended
  //   ended       nodes are sent home, and there is an outcome
  enum class Phase { waiting, training, closing, settled, stopping, abandoning, finishing, ended };
  bool stopping() const { return phase_ == Phase::stopping || phase_ == Phase::abandoning; }
  // No step is begun any more: the run is over when those that are open are committed.
  bool ending() const { return phase_ == Phase::closing || drops_open_steps(); }
  bool drops_open_steps() const { return phase_ == Phase::settled || stopping(); }
  bool running() const override { return phase_ == Phase::training || ending(); }
  bool over() const { return phase_ == Phase::finishing || phase_ == Phase::ended; }
  bool sync() const { return options_.config.mode == Mode::sync; }
  bool out_of_time() const {
    return options_.config.seconds > 0 && tally_.seconds() >= options_.config.seconds;
  }

  Coordinator(Loop& loop, Options options, RunFolder folder, const Log& log);

  // Session::Host
  const Offer* run_offer() override { return offer_ ? &*offer_ : nullptr; }
  Bytes model_file() override { return model_file_ ? model_file_->bytes() : Bytes(); }
  const BlockShape& shape() override { return shape_; }
  Reduction::Buffer take_buffer() override { return training_.learner().take_buffer(); }
  const SharedProbe* memory_probe() override { return transfers_ ? transfers_->memory_probe() : nullptr; }
  Status ready(Session& session) override;
  Status landing(Session& session, const Contribution& contribution, std::span<float> values,
                 std::uint64_t landed) override;
  Status contributed(Session& session, const Contribution& contribution, Reduction::Buffer values) override;
  Status fed_back(Session& session, const Feedback& about, std::span<const float> feedback) override;
  void drained(Session& session) override;
  void ended(Session& session, const Error& reason) override;
  void gone(Session& session) override { sessions_.gone(session.id()); }

  // Training::Host
  void checked(Training::Arrived arrived) override;
  void step_taken(const Sums& sums) override;
  void applied(const Contribution& contribution) override;
  void parts_due() override;
  void idle() override;
  void failed(Error error) override { fail(std::move(error)); }
  void diverged_because(std::string_view how) override;

  void arm_tick();
  void tick();
  void start_training();
  // Leases go out as the round hands them out.
  void pump();
  // Everything that may have become possible, in order.
  void advance();

  Status train_answer(Session& session, Training::Arrived& arrived);

  // Commits wait while a checkpoint is written from the memory that they would change, and while the version
  // at hand is evaluated.
  bool gate_open() const { return !checkpoints_.in_progress() && !evaluations_.in_progress(); }
  // A run that drops its open steps ends one of which parts are taken.
  bool may_step() const { return !drops_open_steps() || step_must_end(); }
  // The step at hand cannot be left: parts of it are taken, or error feedback already contains it, on a node
  // that began the step, or here, handed over by a node that left.
  bool step_must_end() const;
  void commit_async();
  void committed(const Tally::Commit& commit);

  // Every few steps.
  bool evaluation_due() const {
    const std::uint64_t every = options_.config.evaluate_every, version = training_.learner().version();
    return every > 0 && version > 0 && version % every == 0 && evaluations_.possible();
  }
  void begin_evaluation(Evaluations::Kind kind) {
    evaluations_.begin(kind);
    round_->begin_evaluation(evaluations_.slots(), loop_.now(), samples_->slots_max(Work::evaluate));
  }
  void end_evaluation();
  void leave_evaluation();
  void follow(const Evaluations::Outcome& outcome);

  void write_checkpoint();
  void write_once_gathered();

  void begin_no_step(Phase phase) {
    phase_ = phase;
    round_->hold(true);
  }
  bool run_over() const { return round_->finished() || (ending() && round_->drained()); }
  void try_finish();
  void fail(Error error);
  void fail_once_saved(Error error);
  void end(Status status);
  void conclude(Status status);

  RunReport report() const {
    return {options_.run, options_.config,      loop_,       sessions_, tally_, training_, *round_,
            *samples_,    transfers_->codecs(), evaluations_};
  }

  Loop& loop_;
  const Options options_;
  Log log_;
  ThreadPool pool_;
  std::unique_ptr<Listener> listener_;
  Sessions sessions_;
  Loop::TimerId tick_timer_ = 0;

  std::optional<Offer> offer_;  // once the run has begun
  std::optional<MappedFile> model_file_;
  BlockShape shape_;
  std::unique_ptr<LeaseSamples> samples_;
  std::optional<Round> round_;
  std::optional<Transfers> transfers_;
  std::optional<Answers> answers_;
  FeedbackExchange feedback_;
  Training training_;  // what it does beside the loop ends before what it works with is gone

  Phase phase_ = Phase::waiting;
  std::optional<Status> outcome_;
  std::optional<Error> failure_;  // which the run ends with, once what is committed is saved
  bool stopped_early_ = false;
  Instant stop_progress_;  // stopping: when it began, or when the step that must end last made progress
  Evaluations evaluations_;
  Tally tally_;
  Checkpoints checkpoints_;
  Recorder recorder_;  // last: it must be done before the learner's memory, which it reads, is gone
};

}  // namespace w5xde
