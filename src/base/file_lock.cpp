#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file.h"

namespace w5xde {

Result<FileLock> FileLock::wait_for(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return system_error("opening " + path.string(), errno);
  FileLock lock(file);
  while (::flock(file, LOCK_EX) != 0) {
    if (errno != EINTR) return system_error("locking " + path.string(), errno);
  }
  return lock;
}

FileLock::FileLock(FileLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}

FileLock::~FileLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace w5xde
