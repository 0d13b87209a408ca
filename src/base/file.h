// Files: mapped for reading, and replaced as a whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/bytes.h"
#include "w5xde/result.h"

namespace w5xde {

// An Error of kind system, such as "writing run.db: No space left on device", where `what` is the first half.
Error system_error(const std::string& what, int error_number);

// A read-only mapping of a whole file. The bytes stay valid while it lives, even if the file is replaced.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  Bytes bytes() const { return bytes_; }

 private:
  explicit MappedFile(Bytes bytes) : bytes_(bytes) {}
  Bytes bytes_;
};

// Writes the parts one after the other to a temporary file beside `path`, makes it durable, and renames it
// over `path`: a reader sees the old file or the new one, whole, at every instant and after a crash at any
// instant. Any number of threads and processes may write one path; the last to finish wins.
Status write_file_atomically(const std::filesystem::path& path, std::span<const Bytes> parts);

}  // namespace w5xde
