#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "record/checkpoint.h"
#include "record/summary.h"
#include "wire/messages.h"

namespace w5xde {

// A run's evaluations: the one in progress, what the last one said, and what follows from it: which version
// is the best, and whether the run ends because a target is reached or patience is over. Loop thread only.
class Evaluations {
 public:
  struct Options {
    std::uint32_t slots = 0;  // 0: there is nothing to evaluate with
    bool classifies = false;
    double target_accuracy = 0;       // 0: there is no target
    double target_loss = 0;           // 0: there is no target
    std::uint64_t patience = 0;       // evaluations in a row without a lower loss; 0: any number
    std::optional<double> best_loss;  // of the checkpoint that is saved as the best
    // What the run goes on from.
    std::optional<std::uint64_t> counted_version;  // the last that was counted
    std::optional<double> lowest_loss;             // of all that were counted
    std::uint64_t since_lowest = 0;                // evaluations after it
  };
  Evaluations() = default;
  explicit Evaluations(const Options& options) : options_(options) {}

  bool possible() const { return options_.slots > 0; }
  std::uint32_t slots() const { return options_.slots; }

  // none → on_the_way → none: training goes on afterwards.
  // none → deciding → none: of the parameters that would be saved if the run ended here.
  enum class Kind { none, on_the_way, deciding };
  void begin(Kind kind);
  bool in_progress() const { return kind_ != Kind::none; }
  void add(const Contribution& contribution) { parts_[contribution.block.first_slot] = contribution; }
  // It is given up.
  void leave();

  // What follows for the run.
  enum class Course {
    unchanged,
    ends_here,  // with the version that was evaluated
    ends_soon,  // no further step is begun; the run ends with the last that is open, if that is good enough
    goes_on,    // it is not: the parameters themselves do not reach the target
  };
  struct Outcome {
    EvaluationStats stats;
    std::uint64_t samples = 0;
    Course course = Course::unchanged;
    std::string news;  // why, in words
  };
  // What was evaluated.
  struct Evaluated {
    std::uint64_t version = 0;
    bool exact = true;         // that version itself, not what a lossy codec showed of it
    bool can_be_last = false;  // the run can end with it
    bool counts = true;        // it is one of those that come every few steps
    bool out_of_time = false;  // the run ends anyway
  };
  // All contributions are in.
  Outcome finish(const Evaluated& of);

  bool is_of(std::uint64_t version) const { return of_ && of_->version == version; }
  bool is_exactly_of(std::uint64_t version) const { return is_of(version) && of_->exact; }
  bool has_counted(std::uint64_t version) const { return options_.counted_version == version; }
  // The loss of this version, if it is lower than that of the best that is saved.
  std::optional<double> better_loss(std::uint64_t version) const;
  void set_best_loss(double loss) { options_.best_loss = loss; }

  // What a checkpoint has of it.
  void add_to(CheckpointInfo& info) const;
  // Why the run ended before its last step, in words; empty where it did not.
  const std::string& ending() const { return ending_; }

 private:
  std::string target_reached() const;
  Course judge(Kind kind, const Evaluated& of, std::string& news);
  bool count(const Evaluated& of);

  Options options_;
  Kind kind_ = Kind::none;
  std::map<std::uint32_t, Contribution> parts_;  // by first slot, so that their sum has one order
  std::optional<Evaluated> of_;                  // the last one
  EvaluationStats stats_;
  bool target_in_sight_ = false;
  std::string ending_;
};

}  // namespace w5xde
