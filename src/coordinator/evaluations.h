#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "record/summary.h"
#include "wire/messages.h"

namespace w5xde {

// A run's evaluations: the one in progress, what the last one said, and what follows from it: which version
// is the best, and whether the target is reached. Loop thread only.
class Evaluations {
 public:
  struct Options {
    std::uint32_t slots = 0;          // 0: there is nothing to evaluate with
    bool classifies = false;          // it has an accuracy
    bool sequences = false;           // of classes: it has a perplexity
    double target_accuracy = 0;       // 0: there is no target
    std::optional<double> best_loss;  // of the checkpoint that is saved as the best
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

  enum class Target {
    open,      // nothing changes
    in_sight,  // no further step is begun; the evaluation that decides is still to come
    reached,
    missed,  // the parameters themselves do not reach it
  };
  struct Outcome {
    EvaluationStats stats;
    std::uint64_t samples = 0;
    Target target = Target::open;
  };
  // What was evaluated.
  struct Evaluated {
    std::uint64_t version = 0;
    bool exact = true;         // that version itself, not what a lossy codec showed of it
    bool out_of_time = false;  // the run ends anyway
  };
  // All contributions are in.
  Outcome finish(const Evaluated& of);

  bool is_of(std::uint64_t version) const { return of_ && of_->version == version; }
  bool is_exactly_of(std::uint64_t version) const { return is_of(version) && of_->exact; }
  // The loss of this version, if it is lower than that of the best that is saved.
  std::optional<double> better_loss(std::uint64_t version) const;
  void set_best_loss(double loss) { options_.best_loss = loss; }

 private:
  Target judge(Kind kind, bool out_of_time);

  Options options_;
  Kind kind_ = Kind::none;
  std::map<std::uint32_t, Contribution> parts_;  // by first slot, so that their sum has one order
  std::optional<Evaluated> of_;                  // the last one
  EvaluationStats stats_;
  bool target_in_sight_ = false;
};

}  // namespace w5xde
