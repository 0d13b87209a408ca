#pragma once

#include <functional>
#include <initializer_list>
#include <memory>

#include "net/asio_loop.h"

namespace w5xde {

// Signals of the process, delivered on the loop, for as long as this lives.
class Signals {
 public:
  Signals(AsioLoop& loop, std::initializer_list<int> signals, std::function<void(int)> caught);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace w5xde
