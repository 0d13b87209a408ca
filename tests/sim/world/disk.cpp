#include "sim/world/disk.h"

#include <algorithm>
#include <cerrno>

namespace w5xde {

namespace fs = std::filesystem;

class SimLock final : public Disk::Lock {
 public:
  void add_line(const std::string&) override {}
};

class SimFile final : public Disk::File {
 public:
  SimFile(SimDisk& disk, std::shared_ptr<SimDisk::Inode> inode, fs::path path)
      : disk_(disk), inode_(std::move(inode)), path_(std::move(path)) {}

  Status write(Bytes bytes) override {
    if (!disk_.goes("write", path_)) return {};
    if (disk_.full_) {
      // As much as there is room for.
      bytes = bytes.first(disk_.random_.below(bytes.size() + 1));
      inode_->bytes.insert(inode_->bytes.end(), bytes.begin(), bytes.end());
      return system_error("writing " + path_.string(), ENOSPC);
    }
    inode_->bytes.insert(inode_->bytes.end(), bytes.begin(), bytes.end());
    inode_->synced = false;
    return {};
  }
  Status sync() override {
    if (!disk_.goes("sync", path_)) return {};
    if (disk_.failing_syncs_ > 0) {
      --disk_.failing_syncs_;
      return system_error("making durable " + path_.string(), EIO);
    }
    inode_->durable = inode_->bytes;
    inode_->synced = true;
    return {};
  }
  Status close() override { return {}; }

 private:
  SimDisk& disk_;
  std::shared_ptr<SimDisk::Inode> inode_;
  fs::path path_;
};

// False: the process is gone, and does nothing any more.
bool SimDisk::goes(const char* operation, const fs::path& path) {
  // Temporary names have the thread's number in them, which is another one each time.
  if (!frozen_ && on_change)
    on_change(std::string(operation) + " " + path.stem().stem().string() +
              (path.extension() == ".tmp" ? " (temporary)" : ""));
  return !frozen_;
}

void SimDisk::set_name(const std::string& name, std::shared_ptr<Inode> inode) {
  changes_.push_back({name, inode});
  if (inode) {
    names_[name] = std::move(inode);
  } else {
    names_.erase(name);
  }
}

Result<std::unique_ptr<Disk::File>> SimDisk::create(const fs::path& path) {
  auto inode = std::make_shared<Inode>();
  if (goes("create", path)) set_name(path.string(), inode);
  return std::unique_ptr<File>(std::make_unique<SimFile>(*this, std::move(inode), path));
}

Result<MappedFile> SimDisk::map(const fs::path& path) {
  const auto found = names_.find(path.string());
  if (found == names_.end()) return system_error("opening " + path.string(), ENOENT);
  const auto copy = std::make_shared<AlignedBuffer>(found->second->bytes.size());
  std::ranges::copy(found->second->bytes, copy->data());
  return MappedFile(copy, {copy->data(), found->second->bytes.size()});
}

Status SimDisk::rename(const fs::path& from, const fs::path& to) {
  if (!goes("rename", to)) return {};
  const auto found = names_.find(from.string());
  if (found == names_.end()) return system_error("renaming " + from.string(), ENOENT);
  const auto inode = found->second;
  set_name(to.string(), inode);
  set_name(from.string(), nullptr);
  return {};
}

Status SimDisk::link(const fs::path& file, const fs::path& name) {
  if (!goes("link", name)) return {};
  const auto found = names_.find(file.string());
  if (found == names_.end()) return system_error("linking " + name.string(), ENOENT);
  set_name(name.string(), found->second);
  return {};
}

Status SimDisk::remove(const fs::path& path) {
  if (!names_.contains(path.string()) || !goes("remove", path)) return {};
  set_name(path.string(), nullptr);
  return {};
}

Status SimDisk::sync_folder(const fs::path& folder) {
  if (!goes("sync folder", folder)) return {};
  std::erase_if(changes_, [&](const Change& change) {
    if (fs::path(change.name).parent_path() != folder) return false;
    if (change.inode) {
      durable_names_[change.name] = change.inode;
    } else {
      durable_names_.erase(change.name);
    }
    return true;
  });
  return {};
}

std::vector<std::string> SimDisk::names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& [name, inode] : names_) {
    if (fs::path(name).parent_path() == folder) names.push_back(fs::path(name).filename().string());
  }
  return names;
}

Result<std::shared_ptr<Disk::Lock>> SimDisk::lock(const fs::path& path) {
  std::weak_ptr<Lock>& held = locks_[path.string()];
  if (!held.expired()) return invalid(path.string() + " is in use");
  const auto lock = std::make_shared<SimLock>();
  held = lock;
  return std::shared_ptr<Lock>(lock);
}

void SimDisk::lose_power() {
  // Names reach the disk in their order: the first `reached` have.
  const std::size_t reached = random_.below(changes_.size() + 1);
  for (std::size_t i = 0; i < reached; ++i) {
    if (changes_[i].inode) {
      durable_names_[changes_[i].name] = changes_[i].inode;
    } else {
      durable_names_.erase(changes_[i].name);
    }
  }
  changes_.clear();
  names_ = durable_names_;
  for (auto& [name, inode] : names_) {
    if (inode->synced) continue;
    // Of bytes that were not made durable, some have reached the disk all the same.
    const std::size_t written = inode->bytes.size();
    switch (random_.below(3)) {
      case 0:
        inode->bytes = inode->durable;
        break;
      case 1:
        inode->bytes.resize(random_.below(written + 1));
        break;
      default:
        break;
    }
    inode->durable = inode->bytes;
    inode->synced = true;
  }
}

}  // namespace w5xde
