// A disk in memory that fails as disks do. What was not made durable may be lost when the machine goes down,
// whole, in part, or not at all; so may names, the latest first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/random.h"

namespace w5xde {

class SimDisk final : public Disk {
 public:
  explicit SimDisk(std::uint64_t seed) : random_(seed) {}

  Result<std::unique_ptr<File>> create(const std::filesystem::path& path) override;
  Result<MappedFile> map(const std::filesystem::path& path) override;
  Status rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  Status link(const std::filesystem::path& file, const std::filesystem::path& name) override;
  Status remove(const std::filesystem::path& path) override;
  Status create_folder(const std::filesystem::path&) override { return {}; }
  Status sync_folder(const std::filesystem::path& folder) override;
  bool exists(const std::filesystem::path& path) override { return names_.contains(path.string()); }
  std::vector<std::string> names_in(const std::filesystem::path& folder) override;
  Result<std::shared_ptr<Lock>> lock(const std::filesystem::path& path) override;

  // The machine goes down, and comes up again with what is left.
  void lose_power();
  // The process is gone: what it would have done next is not done. Until revive().
  void freeze() { frozen_ = true; }
  void revive() { frozen_ = false; }
  bool frozen() const { return frozen_; }

  // Faults to come.
  void set_full(bool full) { full_ = full; }
  void fail_syncs(unsigned count) { failing_syncs_ = count; }
  // Called before each change; freeze() in it is a crash at that instant.
  std::function<void(const std::string& operation)> on_change;

 private:
  friend class SimFile;
  struct Inode {
    std::vector<std::byte> bytes;
    std::vector<std::byte> durable;
    bool synced = false;  // `durable` is all of it
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;
  // A name that changed since its folder was made durable. Null: removed.
  struct Change {
    std::string name;
    std::shared_ptr<Inode> inode;
  };

  bool goes(const char* operation, const std::filesystem::path& path);
  void set_name(const std::string& name, std::shared_ptr<Inode> inode);

  Random random_;
  Names names_, durable_names_;
  std::vector<Change> changes_;
  std::map<std::string, std::weak_ptr<Lock>> locks_;
  bool frozen_ = false;
  bool full_ = false;
  unsigned failing_syncs_ = 0;
};

}  // namespace w5xde
