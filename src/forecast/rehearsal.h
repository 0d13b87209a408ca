#pragma once

#include <cstdint>

namespace w5xde {

// How a step falls to its nodes, found out before there is a node: the round itself leases a few steps to
// some that do nothing but take their time. No clock and no thread; the same answer every time.
struct Rehearsal {
  struct Options {
    std::uint32_t slots = 1;
    std::uint32_t grain = 0;  // as Round::Options has it
    std::uint32_t nodes = 1;
    std::uint32_t lanes = 0;  // of their machine: that many nodes work at a time, in turns; 0: all
    double slot_seconds = 0;
    double exchange_seconds = 0;
    // What a step costs a node beside the computing, with the link to itself: its parameters, and an
    // exchange. All share that link. 0: nothing that shares would reckon with.
    double step_seconds = 0;
    // A node's times differ by up to this part from their mean: measured on machines that nodes have to
    // themselves.
    double unsteadiness = 0.08;
  };
  static Rehearsal of(const Options& options);

  double seconds = 0;        // from a step's first lease to its last answer
  double contributions = 0;  // to a step
  double nodes = 0;          // that have a part in it
};

}  // namespace w5xde
