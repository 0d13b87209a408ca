// Files: mapped for reading, replaced as a whole or not at all; on the machine's disk or a simulated one.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "w5xde/result.h"

namespace w5xde {

// An Error of kind system, such as "writing run.db: No space left on device", where `what` is the first half.
Error system_error(const std::string& what, int error_number);

// A read-only view of a whole file. The bytes stay valid while it lives, even if the file is replaced.
class MappedFile {
 public:
  // A file of the machine's own disk.
  static Result<MappedFile> open(const std::filesystem::path& path);
  // Memory that `owner` keeps.
  MappedFile(std::shared_ptr<const void> owner, Bytes bytes) : owner_(std::move(owner)), bytes_(bytes) {}

  Bytes bytes() const { return bytes_; }

 private:
  std::shared_ptr<const void> owner_;
  Bytes bytes_;
};

// What is written survives a crash only after sync(); a name (created, renamed, linked or removed) only after
// sync_folder() of the folder that has it. Any thread.
class Disk {
 public:
  class File {
   public:
    virtual ~File() = default;
    virtual Status write(Bytes bytes) = 0;
    virtual Status sync() = 0;
    virtual Status close() = 0;
  };
  // Held while it lives.
  class Lock {
   public:
    virtual ~Lock() = default;
    // For those who find it held, after the line that names the owner. They see it too once it is not held,
    // until the next owner.
    virtual void add_line(const std::string& line) = 0;
  };

  virtual ~Disk() = default;

  // A new, empty file, in place of what had the name before.
  virtual Result<std::unique_ptr<File>> create(const std::filesystem::path& path) = 0;
  virtual Result<MappedFile> map(const std::filesystem::path& path) = 0;
  virtual Status rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  // A second name for the same file.
  virtual Status link(const std::filesystem::path& file, const std::filesystem::path& name) = 0;
  // Ok when there is no such file.
  virtual Status remove(const std::filesystem::path& path) = 0;
  virtual Status create_folder(const std::filesystem::path& folder) = 0;
  virtual Status sync_folder(const std::filesystem::path& folder) = 0;
  virtual bool exists(const std::filesystem::path& path) = 0;
  // The names in a folder; none when it cannot be read.
  virtual std::vector<std::string> names_in(const std::filesystem::path& folder) = 0;
  // `path` names the owner. invalid when somebody else holds it.
  virtual Result<std::shared_ptr<Lock>> lock(const std::filesystem::path& path) = 0;
};

// The machine's own. Has no state.
Disk& real_disk();

// What the owner of a lock wrote into it, line by line, and whether it still holds it.
struct LockText {
  bool held = false;
  std::vector<std::string> lines;
};
LockText read_lock(const std::filesystem::path& path);

// Writes the parts to a temporary file beside `path`, makes it durable and renames it: a reader sees the old
// file or the new one, whole, also after a crash. Any thread or process may write one path; the last wins.
Status write_file_atomically(const std::filesystem::path& path, std::span<const Bytes> parts,
                             Disk& disk = real_disk());

}  // namespace w5xde
