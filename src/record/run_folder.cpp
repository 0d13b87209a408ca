#include "record/run_folder.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <system_error>
#include <utility>

#include "base/errors.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kTemporarySuffix = ".tmp";
constexpr const char* kLockName = "lock";
constexpr const char* kCheckpointsName = "checkpoints";
constexpr const char* kBestName = "best.safetensors";
// Lines of the lock, behind the one that names its owner.
constexpr std::string_view kAddressLine = "listens on ";
constexpr std::string_view kCommandLine = "go on with ";
constexpr std::string_view kCertificateLine = "has the certificate ";

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

struct Numbered {
  std::uint64_t step;
  fs::path path;
};

// Newest first.
std::vector<Numbered> numbered_checkpoints(Disk& disk, const fs::path& folder) {
  std::vector<Numbered> found;
  for (const std::string& name : disk.names_in(folder)) {
    if (const auto step = step_of(name)) found.push_back({*step, folder / name});
  }
  std::ranges::sort(found, std::greater{}, &Numbered::step);
  return found;
}

// What write_file_atomically and link_best leave behind when the process is killed.
void remove_temporaries(Disk& disk, const fs::path& folder, std::span<const std::string_view> prefixes) {
  for (const std::string& name : disk.names_in(folder)) {
    const bool ours = std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
    // One that cannot be removed is in nobody's way.
    if (ours && name.ends_with(kTemporarySuffix)) (void)disk.remove(folder / name);
  }
}

// Gives `checkpoint` the second name `best`. There is a best.safetensors, whole, at every instant.
Status link_best(Disk& disk, const fs::path& checkpoint, const fs::path& best) {
  const fs::path temporary = best.string() + std::string(kTemporarySuffix);
  (void)disk.remove(temporary);
  if (!disk.link(checkpoint, temporary).ok()) {  // some file systems have no links
    W5XDE_TRY(const MappedFile file, disk.map(checkpoint));
    const Bytes bytes = file.bytes();
    return write_file_atomically(best, {&bytes, 1}, disk);
  }
  W5XDE_CHECK(disk.rename(temporary, best));
  // A rename between two names of one file does nothing and leaves both.
  (void)disk.remove(temporary);
  return {};
}

}  // namespace

Result<RunFolder> RunFolder::open(const fs::path& folder, Disk& disk) {
  const fs::path checkpoints_folder = folder / kCheckpointsName;
  W5XDE_CHECK(disk.create_folder(folder));
  W5XDE_TRY(auto lock, disk.lock(folder / kLockName));
  W5XDE_CHECK(disk.create_folder(checkpoints_folder));
  // A coordinator may have been killed after it renamed a checkpoint and before the name was durable.
  W5XDE_CHECK(disk.sync_folder(checkpoints_folder));
  constexpr std::array<std::string_view, 2> kCheckpointFiles = {kStepPrefix, kBestName};
  constexpr std::array<std::string_view, 4> kRunFiles = {"run.toml.", "summary.json.", "model.pt.",
                                                         "frozen.safetensors."};
  remove_temporaries(disk, checkpoints_folder, kCheckpointFiles);
  remove_temporaries(disk, folder, kRunFiles);
  return RunFolder(folder, disk, std::move(lock));
}

Result<RunFolder> RunFolder::look(const fs::path& folder) {
  RunFolder run(folder, real_disk(), nullptr);
  std::error_code error;
  if (!fs::is_directory(folder, error)) return invalid(folder.string() + " is not a folder");
  const std::array signs = {run.run_toml(), run.database(), folder / kLockName, run.best_checkpoint()};
  const bool has_sign =
      std::ranges::any_of(signs, [&](const fs::path& sign) { return fs::exists(sign, error); });
  if (!has_sign && run.checkpoints().empty())
    return invalid(folder.string() +
                   " is not the folder of a run: it has no run.toml, run.db or checkpoints");
  return run;
}

RunFolder::Owner RunFolder::owner() const {
  const LockText lock = read_lock(path_ / kLockName);
  Owner owner{.has_it = lock.held};
  for (const std::string& line : lock.lines) {
    if (line.starts_with(kAddressLine)) {
      owner.address = line.substr(kAddressLine.size());
    } else if (line.starts_with(kCommandLine)) {
      owner.command = line.substr(kCommandLine.size());
    } else if (line.starts_with(kCertificateLine)) {
      owner.certificate = line.substr(kCertificateLine.size());
    } else {
      owner.process = line;
    }
  }
  return owner;
}

void RunFolder::introduce(const std::string& address, const std::string& command,
                          const std::string& certificate) const {
  // Before the address: who reads that one must know how to come there.
  if (!certificate.empty()) lock_->add_line(std::string(kCertificateLine) + certificate);
  lock_->add_line(std::string(kAddressLine) + address);
  lock_->add_line(std::string(kCommandLine) + command);
}

fs::path RunFolder::engine_file() const {
  for (const fs::path& file : {model_file(), frozen_file()}) {
    if (disk_->exists(file)) return file;
  }
  return {};
}

fs::path RunFolder::checkpoint_path(std::uint64_t step) const {
  return path_ / kCheckpointsName / fmt::format("{}{:09}{}", kStepPrefix, step, kSuffix);
}

fs::path RunFolder::best_checkpoint() const {
  return path_ / kCheckpointsName / kBestName;
}

std::optional<CheckpointInfo> RunFolder::best() const {
  auto info = read_checkpoint_info(best_checkpoint(), *disk_);
  return info.ok() ? std::optional(std::move(*info)) : std::nullopt;
}

std::vector<fs::path> RunFolder::checkpoints() const {
  std::vector<fs::path> paths;
  for (Numbered& checkpoint : numbered_checkpoints(*disk_, path_ / kCheckpointsName)) {
    paths.push_back(std::move(checkpoint.path));
  }
  return paths;
}

Result<std::optional<CheckpointFile>> RunFolder::newest(std::vector<std::string>* skipped) const {
  std::vector<fs::path> candidates = checkpoints();
  if (disk_->exists(best_checkpoint())) candidates.push_back(best_checkpoint());
  std::string last_reason;
  for (const fs::path& path : candidates) {
    auto file = CheckpointFile::open(path, *disk_);
    if (file.ok()) return std::optional(std::move(file).value());
    // It is whole, and to go on from an older one would throw it away.
    if (file.error().kind == ErrorKind::incompatible) return std::move(file).error();
    last_reason = file.error().to_string();
    if (skipped) skipped->push_back(last_reason);
  }
  if (candidates.empty()) return std::optional<CheckpointFile>();
  return corrupt("none of the {} checkpoints in {} can be used: move them away to begin anew ({})",
                 candidates.size(), (path_ / kCheckpointsName).string(), last_reason);
}

Status RunFolder::retain(std::uint64_t step, bool best, unsigned keep) const {
  if (best) W5XDE_CHECK(link_best(*disk_, checkpoint_path(step), best_checkpoint()));
  unsigned kept = 0;
  for (const Numbered& checkpoint : numbered_checkpoints(*disk_, path_ / kCheckpointsName)) {
    // Past `step` lies only what newest() could not use; it does not take the place of one that can be.
    if (checkpoint.step > step) continue;
    if (kept++ < std::max(keep, 1U)) continue;
    W5XDE_CHECK(disk_->remove(checkpoint.path));
  }
  return {};
}

}  // namespace w5xde
