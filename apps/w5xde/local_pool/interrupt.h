#pragma once

#include <csignal>
#include <initializer_list>

namespace w5xde {

// Ctrl-C and its like, as something to wait for. Processes that are forked later inherit that the signals are
// blocked.
class Interrupt {
 public:
  Interrupt(std::initializer_list<int> signals = {SIGINT, SIGTERM});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Readable from when a signal has come until came() is asked.
  int descriptor() const { return descriptor_; }
  bool pending() const;
  // Whether it came. From then on a second one ends the program at once.
  bool came() const;

 private:
  sigset_t signals_;
  int descriptor_;
};

}  // namespace w5xde
