#include "local_pool/interrupt.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace w5xde {

Interrupt::Interrupt(std::initializer_list<int> signals) {
  sigemptyset(&signals_);
  for (const int number : signals) sigaddset(&signals_, number);
  sigprocmask(SIG_BLOCK, &signals_, nullptr);
  descriptor_ = signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
}

Interrupt::~Interrupt() {
  close(descriptor_);
}

bool Interrupt::pending() const {
  pollfd event{descriptor_, POLLIN, 0};
  return poll(&event, 1, 0) > 0;
}

bool Interrupt::came() const {
  signalfd_siginfo ignored;
  if (read(descriptor_, &ignored, sizeof ignored) != sizeof ignored) return false;
  sigprocmask(SIG_UNBLOCK, &signals_, nullptr);
  return true;
}

}  // namespace w5xde
