#include "net/signals.h"

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>

namespace w5xde {

struct Signals::State : std::enable_shared_from_this<Signals::State> {
  State(AsioLoop& loop, std::function<void(int)> function)
      : set(loop.context()), caught(std::move(function)) {}

  void wait() {
    set.async_wait([self = shared_from_this()](const std::error_code& error, int signal) {
      if (error) return;
      self->caught(signal);
      self->wait();
    });
  }

  asio::signal_set set;
  std::function<void(int)> caught;
};

Signals::Signals(AsioLoop& loop, std::initializer_list<int> signals, std::function<void(int)> caught)
    : state_(std::make_shared<State>(loop, std::move(caught))) {
  for (const int signal : signals) state_->set.add(signal);
  state_->wait();
}

Signals::~Signals() {
  state_->caught = [](int) {};
  std::error_code ignored;  // cancelling cannot fail in a way that matters here
  state_->set.cancel(ignored);
}

}  // namespace w5xde
