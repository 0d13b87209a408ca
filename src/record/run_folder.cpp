#include "record/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>

#include "base/file.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr const char* kLockName = "lock";
constexpr const char* kCheckpointsName = "checkpoints";
constexpr const char* kBestName = "best.safetensors";

// The step that "step-000000123.safetensors" is of; none for any other name.
std::optional<std::uint64_t> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix) || !name.ends_with(kSuffix)) return std::nullopt;
  name.remove_prefix(kStepPrefix.size());
  if (name.size() <= kSuffix.size()) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  std::uint64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return step;
}

// The names in a folder; none when it cannot be read.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

struct Numbered {
  std::uint64_t step;
  fs::path path;
};

// Newest first.
std::vector<Numbered> numbered_checkpoints(const fs::path& folder) {
  std::vector<Numbered> found;
  for (const std::string& name : names_in(folder)) {
    if (const auto step = step_of(name)) found.push_back({*step, folder / name});
  }
  std::ranges::sort(found, std::greater{}, &Numbered::step);
  return found;
}

// What write_file_atomically and link_best leave behind when the process is killed in between; checkpoints
// are large, and a run that is killed every night would fill the disk.
void remove_temporaries(const fs::path& folder, std::span<const std::string_view> prefixes) {
  for (const std::string& name : names_in(folder)) {
    const bool ours = std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
    std::error_code ignored;  // it is in nobody's way
    if (ours && name.ends_with(kTemporarySuffix)) fs::remove(folder / name, ignored);
  }
}

// Gives `checkpoint` the second name `best`. There is a best.safetensors, whole, at every instant.
Status link_best(const fs::path& checkpoint, const fs::path& best) {
  const fs::path temporary = best.string() + std::string(kTemporarySuffix);
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_hard_link(checkpoint, temporary, error);
  if (error) {  // some file systems have no links
    W5XDE_TRY(const MappedFile file, MappedFile::open(checkpoint));
    const Bytes bytes = file.bytes();
    return write_file_atomically(best, {&bytes, 1});
  }
  fs::rename(temporary, best, error);
  if (error) return system_error("renaming " + temporary.string() + " to " + best.string(), error.value());
  // A rename between two names of one file does nothing and leaves both.
  fs::remove(temporary, error);
  return {};
}

Status create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return system_error("creating folder " + folder.string(), error.value());
  return {};
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "?";
}

// "process 123 on host", as the owner of the lock wrote it.
std::string owner_written_in(int lock) {
  std::array<char, 512> text{};
  const ssize_t size = ::pread(lock, text.data(), text.size(), 0);
  std::string owner(text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  owner.erase(std::min(owner.find('\n'), owner.size()));
  // An owner that has the lock since an instant has not signed it yet.
  return owner.empty() ? "another process" : owner;
}

}  // namespace

// The kernel lets go of a flock when its last holder ends, however it ends.
class RunFolder::Lock {
 public:
  explicit Lock(int fd) : fd_(fd) {}
  ~Lock() { ::close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  static Result<std::shared_ptr<Lock>> take(const fs::path& path) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return system_error("opening " + path.string(), errno);
    auto lock = std::make_shared<Lock>(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return system_error("locking " + path.string(), errno);
      return invalid(fmt::format("{} is in use by {}: stop that one, or choose another folder",
                                 path.parent_path().string(), owner_written_in(fd)));
    }
    // Only the message to others is lost when the disk is too full for this.
    const std::string owner = fmt::format("process {} on {}\n", ::getpid(), host_name());
    if (::ftruncate(fd, 0) == 0) [[maybe_unused]]
      const ssize_t ignored = ::pwrite(fd, owner.data(), owner.size(), 0);
    return lock;
  }

 private:
  int fd_;
};

Result<RunFolder> RunFolder::open(const fs::path& folder) {
  const fs::path checkpoints_folder = folder / kCheckpointsName;
  W5XDE_CHECK(create_folder(folder));
  W5XDE_TRY(auto lock, Lock::take(folder / kLockName));
  W5XDE_CHECK(create_folder(checkpoints_folder));
  constexpr std::array<std::string_view, 2> kCheckpointFiles = {kStepPrefix, kBestName};
  constexpr std::array<std::string_view, 3> kRunFiles = {"run.toml.", "summary.json.", "model.pt."};
  remove_temporaries(checkpoints_folder, kCheckpointFiles);
  remove_temporaries(folder, kRunFiles);
  return RunFolder(folder, std::move(lock));
}

Result<RunFolder> RunFolder::look(const fs::path& folder) {
  RunFolder run(folder, nullptr);
  std::error_code error;
  if (!fs::is_directory(folder, error)) return invalid(folder.string() + " is not a folder");
  const std::array signs = {run.run_toml(), run.database(), folder / kLockName, run.best_checkpoint()};
  const bool has_sign =
      std::ranges::any_of(signs, [&](const fs::path& sign) { return fs::exists(sign, error); });
  if (!has_sign && run.checkpoints().empty()) {
    return invalid(folder.string() +
                   " is not the folder of a run: it has no run.toml, run.db or checkpoints");
  }
  return run;
}

fs::path RunFolder::checkpoint_path(std::uint64_t step) const {
  return path_ / kCheckpointsName / fmt::format("{}{:09}{}", kStepPrefix, step, kSuffix);
}

fs::path RunFolder::best_checkpoint() const {
  return path_ / kCheckpointsName / kBestName;
}

std::vector<fs::path> RunFolder::checkpoints() const {
  std::vector<fs::path> paths;
  for (Numbered& checkpoint : numbered_checkpoints(path_ / kCheckpointsName)) {
    paths.push_back(std::move(checkpoint.path));
  }
  return paths;
}

Result<std::optional<CheckpointFile>> RunFolder::newest(std::vector<std::string>* skipped) const {
  std::vector<fs::path> candidates = checkpoints();
  std::error_code ignored;
  if (fs::exists(best_checkpoint(), ignored)) candidates.push_back(best_checkpoint());
  std::string last_reason;
  for (const fs::path& path : candidates) {
    auto file = CheckpointFile::open(path);
    if (file.ok()) return std::optional(std::move(file).value());
    // It is whole, and to go on from an older one would throw it away.
    if (file.error().kind == ErrorKind::incompatible) return std::move(file).error();
    last_reason = file.error().to_string();
    if (skipped) skipped->push_back(last_reason);
  }
  if (candidates.empty()) return std::optional<CheckpointFile>();
  return corrupt(
      fmt::format("none of the {} checkpoints in {} can be used: move them away to begin anew ({})",
                  candidates.size(), (path_ / kCheckpointsName).string(), last_reason));
}

Status RunFolder::retain(std::uint64_t step, bool best, unsigned keep) const {
  if (best) W5XDE_CHECK(link_best(checkpoint_path(step), best_checkpoint()));
  unsigned kept = 0;
  for (const Numbered& checkpoint : numbered_checkpoints(path_ / kCheckpointsName)) {
    // Past `step` lies only what newest() could not use; it does not take the place of one that can be.
    if (checkpoint.step > step) continue;
    if (kept++ < std::max(keep, 1U)) continue;
    std::error_code error;
    fs::remove(checkpoint.path, error);
    if (error) return system_error("deleting " + checkpoint.path.string(), error.value());
  }
  return {};
}

}  // namespace w5xde
