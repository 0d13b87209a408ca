#include "support/full_disk.h"

#include <csignal>

namespace w5xde {

FullDisk::FullDisk(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
  ::getrlimit(RLIMIT_FSIZE, &old_limit_);
  rlimit limit = old_limit_;
  limit.rlim_cur = bytes;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

FullDisk::~FullDisk() {
  ::setrlimit(RLIMIT_FSIZE, &old_limit_);
  std::signal(SIGXFSZ, old_handler_);
}

}  // namespace w5xde
