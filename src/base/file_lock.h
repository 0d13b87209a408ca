#pragma once

#include <filesystem>

#include "w5xde/result.h"

namespace w5xde {

// One process or thread at a time holds the lock of a path; the others wait. The kernel lets go of it when
// its holder ends, however it ends. For work of milliseconds; Disk::lock is for owners that stay.
class FileLock {
 public:
  // Makes the file, with mode 0600, if there is none.
  static Result<FileLock> wait_for(const std::filesystem::path& path);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&&) = delete;

 private:
  explicit FileLock(int file) : file_(file) {}

  int file_;
};

}  // namespace w5xde
