#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/recorder.h"
#include "coordinator/tally.h"

namespace w5xde {

// Saves a run: when a checkpoint is due, writing it, and trying again when the disk refuses. Commits must
// wait while it is in progress. Loop thread only.
class Checkpoints {
 public:
  struct Options {
    Duration every;
    Duration retry;  // after the first failure; twice as long after each further one
    unsigned keep = 3;
  };
  // `tally` is told what is saved, and what the disk refuses.
  Checkpoints(Loop& loop, Recorder& recorder, Tally& tally, const Options& options)
      : loop_(loop), recorder_(recorder), tally_(tally), options_(options) {}
  ~Checkpoints() { loop_.cancel(retry_timer_); }
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // The run goes on from one of this version.
  void resume(std::uint64_t version) { saved_version_ = version; }
  void set_due() { due_ = loop_.now() + options_.every; }
  bool is_due() const { return loop_.now() >= due_; }
  bool in_progress() const { return state_ != State::idle; }
  bool refused() const { return state_ == State::refused; }
  bool has_saved(std::uint64_t version) const { return saved_version_ == version; }
  // What was saved lacks something: the version is saved again.
  void forget_saved() { saved_version_.reset(); }
  // The run is over: a disk that refuses now is not tried again.
  void stop_trying() { tries_max_ = 0; }

  // One is to be written as soon as the nodes' error feedback is gathered for it.
  void begin() { state_ = State::gathering; }
  bool begun() const { return state_ == State::gathering; }
  struct Saving {
    CheckpointInfo info;
    std::vector<NamedBlock> blocks;  // must not change until it is done
    bool best = false;
  };
  using Done = std::function<void(const Status&)>;
  void write(Saving saving, const Done& done);

 private:
  // idle → gathering → writing → idle. When the disk refuses: writing → refused, until it is written → idle.
  enum class State { idle, gathering, writing, refused };
  static constexpr unsigned kTriesMax = 6;

  void save(const std::shared_ptr<const Saving>& saving, unsigned failures, const Done& done);

  Loop& loop_;
  Recorder& recorder_;
  Tally& tally_;
  Options options_;
  State state_ = State::idle;
  unsigned tries_max_ = kTriesMax;
  Loop::TimerId retry_timer_ = 0;
  std::optional<std::uint64_t> saved_version_;
  Instant due_;
};

}  // namespace w5xde
