#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "base/errors.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int close() { return fd_ >= 0 ? ::close(std::exchange(fd_, -1)) : 0; }

 private:
  int fd_;
};

class RealFile final : public Disk::File {
 public:
  RealFile(int fd, std::string path) : file_(fd), path_(std::move(path)) {}

  Status write(Bytes bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return system_error("writing " + path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }
  Status sync() override {
    if (::fsync(file_.get()) != 0) return system_error("making durable " + path_, errno);
    return {};
  }
  Status close() override {
    if (file_.close() != 0) return system_error("closing " + path_, errno);
    return {};
  }

 private:
  Descriptor file_;
  std::string path_;
};

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

std::vector<std::string> lines_in(int file) {
  std::array<char, 4096> text{};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  std::istringstream stream(std::string(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

bool is_held(int lock) {
  if (::flock(lock, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(lock, LOCK_UN);
  return false;
}

class RealLock final : public Disk::Lock {
 public:
  explicit RealLock(int file) : file_(file) {}

  // Waits for no owner, but for those who only look whether there is one: they hold it for an instant.
  bool take() {
    constexpr int kLooksMax = 20;
    for (int look = 0; look < kLooksMax; ++look) {
      if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return true;
      if (errno != EWOULDBLOCK) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    errno = EWOULDBLOCK;
    return false;
  }

  // Only the message to others is lost when the disk is too full for it.
  void sign(const std::string& line) {
    if (::ftruncate(file_.get(), 0) == 0) add_line(line);
  }
  void add_line(const std::string& line) override {
    [[maybe_unused]] const ssize_t ignored = ::write(file_.get(), (line + "\n").data(), line.size() + 1);
  }
  // An owner that took it a moment ago has not signed it yet.
  std::string owner() const {
    const auto lines = lines_in(file_.get());
    return lines.empty() ? "another process" : lines.front();
  }

 private:
  Descriptor file_;
};

// Calls a function of std::filesystem that reports errors through its argument.
Status ask(const std::string& what, const auto& call) {
  std::error_code error;
  call(error);
  if (error) return system_error(what, error.value());
  return {};
}

class RealDisk final : public Disk {
 public:
  Result<std::unique_ptr<File>> create(const fs::path& path) override {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return system_error("creating " + path.string(), errno);
    return std::unique_ptr<File>(std::make_unique<RealFile>(fd, path.string()));
  }

  Result<MappedFile> map(const fs::path& path) override { return MappedFile::open(path); }

  Status rename(const fs::path& from, const fs::path& to) override {
    return ask("renaming " + from.string() + " to " + to.string(),
               [&](std::error_code& error) { fs::rename(from, to, error); });
  }

  Status link(const fs::path& file, const fs::path& name) override {
    return ask("linking " + name.string() + " to " + file.string(),
               [&](std::error_code& error) { fs::create_hard_link(file, name, error); });
  }

  Status remove(const fs::path& path) override {
    return ask("deleting " + path.string(), [&](std::error_code& error) { fs::remove(path, error); });
  }

  Status create_folder(const fs::path& folder) override {
    return ask("creating folder " + folder.string(),
               [&](std::error_code& error) { fs::create_directories(folder, error); });
  }

  Status sync_folder(const fs::path& folder) override {
    const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened.valid()) return system_error("opening folder " + folder.string(), errno);
    if (::fsync(opened.get()) != 0) return system_error("making durable folder " + folder.string(), errno);
    return {};
  }

  bool exists(const fs::path& path) override {
    std::error_code ignored;
    return fs::exists(path, ignored);
  }

  std::vector<std::string> names_in(const fs::path& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      names.push_back(at->path().filename().string());
    }
    return names;
  }

  // The kernel lets go of a flock when its last holder ends, however it ends.
  Result<std::shared_ptr<Lock>> lock(const fs::path& path) override {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) return system_error("opening " + path.string(), errno);
    const auto lock = std::make_shared<RealLock>(fd);
    if (!lock->take()) {
      if (errno != EWOULDBLOCK) return system_error("locking " + path.string(), errno);
      return invalid("{} is in use by {}: stop that one, or choose another folder",
                     path.parent_path().string(), lock->owner());
    }
    lock->sign(fmt::format("process {} on {}", ::getpid(), host_name()));
    return std::shared_ptr<Lock>(lock);
  }
};

Status write_durably(Disk& disk, const fs::path& path, std::span<const Bytes> parts) {
  W5XDE_TRY(const auto file, disk.create(path));
  for (const Bytes part : parts) W5XDE_CHECK(file->write(part));
  W5XDE_CHECK(file->sync());
  return file->close();
}

}  // namespace

Error system_error(const std::string& what, int error_number) {
  return {ErrorKind::system, fmt::format("{}: {}", what, std::generic_category().message(error_number))};
}

Disk& real_disk() {
  static RealDisk disk;
  return disk;
}

LockText read_lock(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  return {.held = is_held(file.get()), .lines = lines_in(file.get())};
}

Result<MappedFile> MappedFile::open(const fs::path& path) {
  // Nonblocking: opening a named pipe would wait for somebody to write to it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return system_error("opening " + path.string(), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("reading " + path.string(), errno);
  if (!S_ISREG(status.st_mode)) return invalid(path.string() + " is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile(nullptr, Bytes{});  // mmap refuses length 0
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return system_error("mapping " + path.string(), errno);
  std::shared_ptr<const void> owner(memory, [size](void* mapped) { ::munmap(mapped, size); });
  return MappedFile(std::move(owner), Bytes(static_cast<const std::byte*>(memory), size));
}

Status write_file_atomically(const fs::path& path, std::span<const Bytes> parts, Disk& disk) {
  // No other thread of any process has this thread's id, so two writers never share a temporary file.
  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), ::gettid());
  Status status = write_durably(disk, temporary, parts);
  if (status.ok()) status = disk.rename(temporary, path);
  if (!status.ok()) {
    (void)disk.remove(temporary);
    return status;
  }
  const auto folder = path.parent_path();
  return disk.sync_folder(folder.empty() ? "." : folder);
}

}  // namespace w5xde
