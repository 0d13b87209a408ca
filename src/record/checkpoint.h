// A checkpoint: all of a run's state in one safetensors file, which is whole or not there
// (docs/checkpoint_format.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/batch_growth.h"
#include "base/file.h"
#include "record/committed_slots.h"
#include "tensor/parameter_block.h"
#include "tensor/safetensors.h"
#include "w5xde/result.h"

namespace w5xde {

// All of a run's state that is not floats. NaN and infinity are read back as NaN.
struct CheckpointInfo {
  std::uint64_t step = 0;       // steps committed = the next step's number
  std::uint64_t version = 0;    // of the parameters
  std::uint64_t next_slot = 0;  // the data cursor: where the next step begins, from the run's first slot on
  SlotRanges slots_ahead;       // past it, and committed already: of an async run that was cut off
  std::uint64_t seed = 0;
  std::uint64_t optimizer_steps = 0;
  // Of those, in how many a parameter had no gradient, by its name; those that always had one are not in it.
  std::map<std::string, std::uint64_t> steps_without_gradient;
  std::uint64_t samples_committed = 0;
  std::uint64_t slots_committed = 0;
  std::uint64_t slots_leased_again = 0;
  std::uint64_t duplicates_dropped = 0;
  std::uint64_t feedback_lost = 0;  // nodes that were lost with their error feedback
  double loss_first = 0;
  double loss_last = 0;
  double loss_total = 0;  // sum over steps of the step's mean loss
  double seconds = 0;     // trained so far
  // For the record and for warnings.
  std::string model;
  std::string loss;  // that the model is trained with; empty in files of an older w5xde
  std::string engine;
  std::string processor;
  std::uint64_t model_fingerprint = 0;
  // What the run was begun with; empty in files of an older w5xde.
  std::string data_fingerprint;  // of the samples to train on (data/fingerprint.h)
  std::string model_hash;        // XXH3-128 of the run folder's model file, where it has one
  // Of these parameters, if known; with a lossy parameter codec perhaps as nodes were shown them.
  std::optional<double> evaluation_loss;
  std::optional<double> evaluation_accuracy;
  // Of the evaluations that came every few steps: the lowest loss so far, and how many there were since.
  std::optional<double> lowest_loss;
  std::uint64_t evaluations_since_lowest = 0;
  // Of a run whose global batch grows.
  std::optional<BatchGrowthState> batch_growth;

  // next_slot, or what it must be in a checkpoint that has none.
  std::uint64_t data_cursor() const { return next_slot > 0 || step == 0 ? next_slot : slots_committed; }

  bool operator==(const CheckpointInfo&) const = default;
};

// Writes the file whole or not at all; durable when it returns.
Status write_checkpoint(const std::filesystem::path& path, const CheckpointInfo& info,
                        std::span<const NamedBlock> blocks, Disk& disk = real_disk());

// What a checkpoint says of itself; its floats are not looked at.
Result<CheckpointInfo> read_checkpoint_info(const std::filesystem::path& path, Disk& disk = real_disk());

// A group of an opened checkpoint.
struct CheckpointGroup {
  std::string name;
  std::shared_ptr<const BlockLayout> layout;
  std::vector<Bytes> tensors;  // of the layout's entries, in the mapped file
};

// Whether the file says that it is one; what it says is not checked.
bool is_checkpoint(const SafetensorsContents& file);

// Opened, and every byte checked. Stays readable while the file is replaced or deleted.
class CheckpointFile final : public BlockSource {
 public:
  // corrupt: a byte is not what was written; invalid: not a checkpoint; incompatible: of a newer w5xde.
  static Result<CheckpointFile> open(const std::filesystem::path& path, Disk& disk = real_disk());

  const CheckpointInfo& info() const { return info_; }
  std::shared_ptr<const BlockLayout> layout_of(std::string_view group) const override;
  Status read(std::string_view group, const BlockLayout& layout, std::span<float> values) const override;

 private:
  CheckpointFile(SafetensorsFile file, CheckpointInfo info, std::vector<CheckpointGroup> groups)
      : file_(std::move(file)), info_(std::move(info)), groups_(std::move(groups)) {}
  const CheckpointGroup* find(std::string_view group) const;

  SafetensorsFile file_;
  CheckpointInfo info_;
  std::vector<CheckpointGroup> groups_;
};

}  // namespace w5xde
