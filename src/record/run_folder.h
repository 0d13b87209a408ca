// A run on disk: RUN/{run.toml,run.db,checkpoints/,summary.json,lock,model.pt,
// frozen.safetensors,identity.pem,invitations.json} (docs/run_folder.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "record/checkpoint.h"
#include "w5xde/result.h"

namespace w5xde {

class RunFolder {
 public:
  // Creates the folder if need be and locks it while this object or a copy of it lives. invalid, with the
  // owner's process id, when another coordinator has it. Removes temporary files of a killed coordinator.
  static Result<RunFolder> open(const std::filesystem::path& folder, Disk& disk = real_disk());

  // For reading only: takes no lock and creates nothing. invalid when the folder is not a run's.
  static Result<RunFolder> look(const std::filesystem::path& folder);

  // The coordinator that has the folder, or had it last.
  struct Owner {
    bool has_it = false;  // now
    std::string process;  // "process 4711 on desk"; empty: there never was one
    std::string address;  // where it listens; empty: not known
    std::string command;  // that goes on with the run when it has ended; empty: not known
    std::string
        certificate;  // the SHA-256 of the one that it has, in hexadecimal; empty: it listens without TLS
  };
  Owner owner() const;
  // Who has the folder tells others how to ask it, and how to go on without it. kRunWord in `command` stands
  // for the folder, which each may call by another name.
  static constexpr const char* kRunWord = "RUN";
  void introduce(const std::string& address, const std::string& command,
                 const std::string& certificate = {}) const;

  const std::filesystem::path& path() const { return path_; }
  Disk& disk() const { return *disk_; }
  std::filesystem::path run_toml() const { return path_ / "run.toml"; }
  std::filesystem::path database() const { return path_ / "run.db"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }
  std::filesystem::path invitations() const { return path_ / "invitations.json"; }  // a secret
  std::filesystem::path model_file() const { return path_ / "model.pt"; }
  // Where a part of the model is trained: the parameters that are not, by their names.
  static constexpr const char* kFrozenFile = "frozen.safetensors";
  std::filesystem::path frozen_file() const { return path_ / kFrozenFile; }
  // What engines make the run's model from beside its name, of these two; empty where they need no file.
  std::filesystem::path engine_file() const;
  std::filesystem::path checkpoint_path(std::uint64_t step) const;  // checkpoints/step-000000123.safetensors
  std::filesystem::path best_checkpoint() const;                    // a second name of one of them
  // What the best checkpoint says of itself: the one with the lowest evaluation loss. None where there is
  // none.
  std::optional<CheckpointInfo> best() const;

  // The checkpoints that are there, newest first, by file name; best.safetensors is not among them.
  std::vector<std::filesystem::path> checkpoints() const;

  // The newest whole checkpoint, or none when there is no checkpoint at all. Each that does not open leaves a
  // line in `skipped`; best.safetensors is tried last. An error when there are some but none can be used.
  Result<std::optional<CheckpointFile>> newest(std::vector<std::string>* skipped = nullptr) const;

  // After the checkpoint of `step` was written: makes it best.safetensors if it is the `best`, and deletes
  // all but the last `keep` of those up to `step`. best.safetensors and that of `step` are never deleted.
  Status retain(std::uint64_t step, bool best, unsigned keep) const;

 private:
  RunFolder(std::filesystem::path path, Disk& disk, std::shared_ptr<Disk::Lock> lock)
      : path_(std::move(path)), disk_(&disk), lock_(std::move(lock)) {}

  std::filesystem::path path_;
  Disk* disk_;
  std::shared_ptr<Disk::Lock> lock_;  // null when only looking
};

}  // namespace w5xde
