#include "base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace w5xde {

namespace {

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

Status write_all(int fd, Bytes bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("writing " + path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status write_durably(const std::string& path, std::span<const Bytes> parts) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return system_error("creating " + path, errno);
  for (const Bytes part : parts) W5XDE_CHECK(write_all(file.get(), part, path));
  if (::fsync(file.get()) != 0) return system_error("making durable " + path, errno);
  if (file.close() != 0) return system_error("closing " + path, errno);
  return {};
}

// A rename is durable only once the folder that holds the name is.
Status sync_folder(const std::filesystem::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return system_error("opening folder " + folder.string(), errno);
  if (::fsync(opened.get()) != 0) return system_error("making durable folder " + folder.string(), errno);
  return {};
}

}  // namespace

Error system_error(const std::string& what, int error_number) {
  return {ErrorKind::system, fmt::format("{}: {}", what, std::generic_category().message(error_number))};
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Nonblocking: opening a named pipe would wait for somebody to write to it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return system_error("opening " + path.string(), errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return system_error("reading " + path.string(), errno);
  if (!S_ISREG(status.st_mode)) return invalid(path.string() + " is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return MappedFile(Bytes{});  // mmap refuses length 0
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return system_error("mapping " + path.string(), errno);
  return MappedFile(Bytes(static_cast<const std::byte*>(memory), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Status write_file_atomically(const std::filesystem::path& path, std::span<const Bytes> parts) {
  // The thread's id, which no other thread of any process has, keeps two writers of one path from sharing a
  // temporary file.
  const std::string temporary = fmt::format("{}.{}.tmp", path.string(), ::gettid());
  if (auto written = write_durably(temporary, parts); !written.ok()) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    return system_error("renaming " + temporary + " to " + path.string(), reason);
  }
  const auto folder = path.parent_path();
  return sync_folder(folder.empty() ? "." : folder);
}

}  // namespace w5xde
