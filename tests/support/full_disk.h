#pragma once

#include <sys/resource.h>

namespace w5xde {

// Until it goes, no file of this process may grow past `bytes`: the way to a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes);
  ~FullDisk();
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*old_handler_)(int);
  rlimit old_limit_{};
};

}  // namespace w5xde
