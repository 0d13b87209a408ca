#include "base/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/errors.h"
#include "base/file.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;

// No other thread of any process of this machine has this name for its temporary file.
fs::path temporary_of(const fs::path& path) {
  return fmt::format("{}.{}.tmp", path.string(), ::gettid());
}

Status write_all(int file, Bytes bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("writing " + path.string(), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (::fsync(file) != 0) return system_error("making durable " + path.string(), errno);
  return {};
}

// The mode is there from the start: at no instant may others read the file.
Status write_temporary(const fs::path& temporary, Bytes bytes) {
  ::unlink(temporary.c_str());  // of a process that was killed
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return system_error("creating " + temporary.string(), errno);
  Status status = write_all(file, bytes, temporary);
  if (::close(file) != 0 && status.ok()) status = system_error("closing " + temporary.string(), errno);
  return status;
}

Status sync_folder_of(const fs::path& path) {
  const auto folder = path.parent_path();
  return real_disk().sync_folder(folder.empty() ? "." : folder);
}

}  // namespace

Status make_private_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::is_directory(folder, error)) return {};
  if (folder.has_parent_path()) W5XDE_CHECK(real_disk().create_folder(folder.parent_path()));
  // Another process may be first.
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return system_error("creating folder " + folder.string(), errno);
  return {};
}

Status write_secret_file(const fs::path& path, Bytes bytes) {
  const fs::path temporary = temporary_of(path);
  Status status = write_temporary(temporary, bytes);
  if (status.ok()) status = real_disk().rename(temporary, path);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return sync_folder_of(path);
}

Status make_secret_file(const fs::path& path, Bytes bytes) {
  const fs::path temporary = temporary_of(path);
  Status status = write_temporary(temporary, bytes);
  // Unlike a rename, a link never takes the place of what another process has made meanwhile.
  if (status.ok() && ::link(temporary.c_str(), path.c_str()) != 0 && errno != EEXIST)
    status = system_error("creating " + path.string(), errno);
  ::unlink(temporary.c_str());
  W5XDE_CHECK(status);
  return sync_folder_of(path);
}

Status check_private(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return system_error("reading " + path.string(), errno);
  if ((status.st_mode & 077) == 0) return {};
  return invalid("{} is a secret, and others than its owner may read or change it; type chmod 600 {}",
                 path.string(), path.string());
}

}  // namespace w5xde
