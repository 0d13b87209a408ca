// How many nodes take part in a step.
//
// Every node that does needs the parameters and sends a contribution. Behind a thin link that can take longer
// than what its computing saves, and one node alone is then faster than ten. How much links have in common is
// not to be seen from here, so it is tried: as many nodes as should be best go on, and now and then half or
// twice as many take their place for a few steps, where that could pay at all. One node can have all of its
// machine's cores, so that one of each machine is as fast as all, and has fewer exchanges: that is believed
// until steps say clearly otherwise. Pure: no clock, no nodes, only numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace w5xde {

// A version of so many bytes is dear to send, as it seems before that was measured.
inline constexpr std::uint64_t kDearBytes = 1 << 20;

class Crew {
 public:
  // The pool as it is just now.
  struct Pool {
    std::size_t workers = 0;      // that could take part at once
    std::size_t machines = 0;     // whose cores they have; one node can have all of a machine's
    std::size_t links = 1;        // that they have between them, as far as is known
    double compute_seconds = 0;   // of a whole step on one of them
    double exchange_seconds = 0;  // that a step costs one of them beside that, were it alone
  };

  Crew();

  // How many take part; 0: all.
  std::size_t size() const { return trial_.value_or(size_); }
  // Nothing is measured yet, and a version of the parameters is dear to send: one node finds out.
  void probe() { size_ = 1; }
  // As many as should be best if all share one link.
  void guess(const Pool& pool);
  // A step was committed, so long after the one before.
  void step_done(double seconds, const Pool& pool);
  // The step at hand is no measure: nodes evaluate too, come or go, or wait for a checkpoint.
  void disturbed();
  // Others take part from here on.
  void changed();

 private:
  // Steps of one size: several, and over some time. Their median, or one step that was preempted would
  // decide.
  struct Window {
    std::vector<double> steps;
    double seconds = 0;

    void add(double step);
    bool full() const;
    double median() const;
  };

  bool hopeless() const;
  void remember(const Pool& pool);
  void judge(bool better, const Pool& pool);
  void settle(std::size_t size, const Pool& pool);
  void follow_machines(const Pool& pool);
  double at_best(std::size_t size, const Pool& pool) const;
  double bar(std::size_t size, const Pool& pool) const;
  std::optional<std::size_t> worth_trying(const Pool& pool) const;
  std::size_t current(const Pool& pool) const;

  std::size_t size_ = 0;
  bool one_each_ = false;             // one of each machine, however many there are
  std::optional<std::size_t> trial_;  // of another size, while it lasts
  bool fewer_first_ = false;          // where both more and fewer could pay
  std::size_t skip_ = 0;              // steps that say nothing of the size at hand
  Window window_;
  double usual_ = 0;                         // seconds of a step with this size
  std::map<std::size_t, double> computing_;  // seconds of a step, by size: nodes may share cores
  std::size_t windows_ = 0;                  // since the last trial
  std::size_t windows_between_;
};

}  // namespace w5xde
