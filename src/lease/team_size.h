// How many nodes work in a step.
//
// Every node that works needs the parameters and sends a contribution. Behind a thin link that can take
// longer than what its computing saves. Whether nodes share a link cannot be seen from here, so it is tried:
// now and then half or twice as many nodes take over for a few steps, where that could pay at all. One node
// for each machine can use all of its cores and has fewer exchanges: that is believed to be as fast until
// steps clearly say otherwise. Pure: no clock, no nodes, only numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "lease/tuning.h"

namespace w5xde {

class TeamSize {
 public:
  // The pool as it is just now.
  struct Pool {
    std::size_t workers = 0;      // nodes that could work at once
    std::size_t machines = 0;     // that have the cores; one node can use all of a machine's
    std::size_t links = 1;        // that the nodes have between them, as far as is known
    double compute_seconds = 0;   // a whole step takes one node
    double exchange_seconds = 0;  // a step costs one node beside that, if it works alone
  };

  // How many nodes work; 0: all.
  std::size_t size() const { return trial_.value_or(size_); }
  // Nothing is measured yet, and bringing a node in is expensive: one node finds out what a step costs.
  void probe() { size_ = 1; }
  // The number that should be best if all share one link.
  void guess(const Pool& pool);
  // A step was committed, `seconds` after the one before.
  void step_done(double seconds, const Pool& pool);
  // The current step is no measure: nodes evaluate too, join or leave, or wait for a checkpoint.
  void disturbed();
  // Other nodes work from now on.
  void changed();

  // Steps of `size` nodes instead of `now` must take less than this part of the time. One node for each
  // machine may even seem to take longer: half seconds on a shared machine differ by more.
  static double bar(std::size_t size, std::size_t now, std::size_t machines);

 private:
  // Several steps with one number of nodes. Their median counts: one preempted step must not decide.
  struct Window {
    std::vector<double> steps;
    double seconds = 0;

    bool full() const { return steps.size() >= kWindowSteps && seconds >= kWindowSeconds; }
    double median() const;
  };

  std::size_t current(const Pool& pool) const;
  bool hopeless() const;
  void remember(const Pool& pool);
  void judge(bool better, const Pool& pool);
  void settle(std::size_t size, const Pool& pool);
  void follow_machines(const Pool& pool);
  double at_best(std::size_t size, const Pool& pool) const;
  std::optional<std::size_t> worth_trying(const Pool& pool) const;

  std::size_t size_ = 0;
  bool one_per_machine_ = false;      // one node for each machine, however many machines there are
  std::optional<std::size_t> trial_;  // of another number, while it lasts
  bool fewer_first_ = false;          // where both more and fewer nodes could pay
  std::size_t skip_ = 0;              // steps that say nothing of the current number
  Window window_;
  double usual_ = 0;                         // seconds of a step with this number
  std::map<std::size_t, double> computing_;  // seconds of a step, by number of nodes: they may share cores
  std::size_t windows_ = 0;                  // since the last trial
  std::size_t windows_between_ = kWarmUp;
};

}  // namespace w5xde
