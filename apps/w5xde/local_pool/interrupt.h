#pragma once

#include <csignal>
#include <initializer_list>

namespace w5xde {

// Ctrl-C and other signals as a descriptor. They are blocked in this process and in those forked later.
class Interrupt {
 public:
  Interrupt(std::initializer_list<int> signals = {SIGINT, SIGTERM});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  // Readable from a signal until came() is called.
  int descriptor() const { return descriptor_; }
  bool pending() const;
  // Whether a signal came. If so, the next one ends the program at once.
  bool came() const;

 private:
  sigset_t signals_;
  int descriptor_;
};

}  // namespace w5xde
