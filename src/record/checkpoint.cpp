#include "record/checkpoint.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/errors.h"
#include "base/hash.h"
#include "record/json_fields.h"

namespace w5xde {

void visit_fields(auto& visit, Like<BatchGrowthState> auto& state) {
  visit("steps", state.steps);
  visit("noise", state.noise);
  visit("signal", state.signal);
  visit("growths", state.growths);
}

void visit_fields(auto& visit, Like<CheckpointInfo> auto& info) {
  visit("step", info.step);
  visit("version", info.version);
  visit("next_slot", info.next_slot);
  visit.unless_empty("slots_ahead", info.slots_ahead);
  visit("seed", info.seed);
  visit("optimizer_steps", info.optimizer_steps);
  visit.unless_empty("steps_without_gradient", info.steps_without_gradient);
  visit("samples_committed", info.samples_committed);
  visit("slots_committed", info.slots_committed);
  visit("slots_leased_again", info.slots_leased_again);
  visit("duplicates_dropped", info.duplicates_dropped);
  visit("feedback_lost", info.feedback_lost);
  visit("loss_first", info.loss_first);
  visit("loss_last", info.loss_last);
  visit("loss_total", info.loss_total);
  visit("seconds", info.seconds);
  visit("model", info.model);
  visit("loss", info.loss);
  visit("engine", info.engine);
  visit("processor", info.processor);
  visit("model_fingerprint", info.model_fingerprint);
  visit("data_fingerprint", info.data_fingerprint);
  visit("model_hash", info.model_hash);
  visit("evaluation_loss", info.evaluation_loss);
  visit("evaluation_accuracy", info.evaluation_accuracy);
  visit("lowest_loss", info.lowest_loss);
  visit("evaluations_since_lowest", info.evaluations_since_lowest);
  visit.unless_empty("batch_growth", info.batch_growth);
}

namespace {

// Keys of the file's metadata, and of a group in it.
constexpr std::string_view kFormatKey = "w5xde_checkpoint";
constexpr std::string_view kInfoKey = "info";
constexpr std::string_view kGroupsKey = "groups";
constexpr std::string_view kChecksumKey = "checksum";
constexpr const char* kNameKey = "name";
constexpr const char* kTensorsKey = "tensors";
constexpr const char* kLayoutKey = "layout";
constexpr const char* kHashKey = "xxh3_64";

constexpr unsigned kFormat = 1;

std::string hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

std::string tensor_name(std::string_view group, std::string_view name) {
  return fmt::format("{}/{}", group, name);
}

Result<CheckpointInfo> parse_info(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return corrupt("the checkpoint's info is not a JSON object");
  CheckpointInfo info;
  std::string problem;
  FieldReader reader(json, "", MissingKey::skipped, problem);
  visit_fields(reader, info);
  if (!problem.empty()) return corrupt("the checkpoint's " + problem);
  return info;
}

// Proves what the tensors' own hashes do not: step numbers, names, order. The same in every format, so that
// no flipped bit looks like another format.
std::string checksum_of(std::string_view format, std::string_view info, std::string_view groups) {
  Hash64 hash;
  hash.update(bytes_of(format));
  hash.update(bytes_of(info));
  hash.update(bytes_of(groups));
  return hex(hash.digest());
}

Status check_block(const NamedBlock& block, std::span<const NamedBlock> blocks) {
  if (std::ranges::count(blocks, block.group, &NamedBlock::group) > 1)
    return invalid("a checkpoint cannot have two groups named '{}'", block.group);
  if (block.group.empty() || block.group.find('/') != std::string::npos)
    return invalid("a checkpoint cannot have a group named '{}'", block.group);
  if (block.values.size() != block.layout->floats())
    return invalid("group '{}' has {} floats, its layout {}", block.group, block.values.size(),
                   block.layout->floats());
  return {};
}

// Appends the block's tensors and answers what the metadata says about it.
Json add_block(const NamedBlock& block, std::vector<NamedTensor>& tensors) {
  Hash64 hash;
  Json names = Json::array();
  for (const auto& entry : block.layout->entries()) {
    const Bytes bytes = std::as_bytes(block.values.subspan(entry.offset, entry.shape.elements()));
    hash.update(bytes);
    names.push_back(entry.name);
    tensors.push_back({tensor_name(block.group, entry.name), TensorView(bytes, DType::f32, entry.shape)});
  }
  Json described = Json::object();
  described[kNameKey] = block.group;
  described[kTensorsKey] = std::move(names);
  described[kLayoutKey] = hex(fingerprint_of(*block.layout));
  described[kHashKey] = hex(hash.digest());
  return described;
}

using TensorsByName = std::unordered_map<std::string_view, const TensorView*>;

bool is_group(const Json& json) {
  const auto text = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  return json.is_object() && text(kNameKey) && text(kLayoutKey) && text(kHashKey) &&
         json.contains(kTensorsKey) && json[kTensorsKey].is_array() &&
         std::ranges::all_of(json[kTensorsKey], [](const Json& name) { return name.is_string(); });
}

// Takes the group's tensors out of `tensors` and proves names, shapes, order and every byte.
Result<CheckpointGroup> read_group(const Json& json, TensorsByName& tensors) {
  if (!is_group(json)) return corrupt("a group of the checkpoint is not described as one");
  CheckpointGroup group{.name = json[kNameKey].get<std::string>()};
  std::vector<BlockLayout::Entry> entries;
  Hash64 hash;
  for (const Json& json_name : json[kTensorsKey]) {
    const auto name = json_name.get<std::string>();
    const auto found = tensors.find(tensor_name(group.name, name));
    if (found == tensors.end() || found->second->dtype() != DType::f32)
      return corrupt("tensor '{}' of group '{}' is not in the file", name, group.name);
    entries.push_back({name, found->second->shape()});
    group.tensors.push_back(found->second->bytes());
    hash.update(found->second->bytes());
    tensors.erase(found);
  }
  if (hex(hash.digest()) != json[kHashKey].get<std::string>())
    return corrupt("the bytes of group '{}' are not those that were written", group.name);
  // Their bytes are in the file, so they need no further limit.
  W5XDE_TRY(group.layout,
            BlockLayout::make(std::move(entries), std::numeric_limits<std::uint64_t>::max() / 2));
  if (hex(fingerprint_of(*group.layout)) != json[kLayoutKey].get<std::string>())
    return corrupt("the shapes of group '{}' are not those that were written", group.name);
  return group;
}

// The metadata's texts, once they are known to be what was written.
struct Described {
  std::string_view info;
  std::string_view groups;
};

Result<Described> read_described(const Metadata& metadata) {
  const auto text = [&](std::string_view key) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? std::string_view() : std::string_view(found->second);
  };
  const std::string_view format = text(kFormatKey);
  if (format.empty()) return invalid("this safetensors file is not a checkpoint of w5xde");
  const Described described{text(kInfoKey), text(kGroupsKey)};
  if (checksum_of(format, described.info, described.groups) != text(kChecksumKey))
    return corrupt("the checkpoint's metadata is not what was written");
  if (format != std::to_string(kFormat))
    return incompatible(
        "the checkpoint has format {}, this w5xde reads format {}: use the w5xde that wrote it", format,
        kFormat);
  return described;
}

}  // namespace

Status write_checkpoint(const std::filesystem::path& path, const CheckpointInfo& info,
                        std::span<const NamedBlock> blocks, Disk& disk) {
  std::vector<NamedTensor> tensors;
  Json groups = Json::array();
  for (const NamedBlock& block : blocks) {
    if (auto checked = check_block(block, blocks); !checked.ok()) return checked;
    groups.push_back(add_block(block, tensors));
  }
  const std::string format_text = std::to_string(kFormat);
  const std::string described_info = Json(info).dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string described_groups;
  try {
    described_groups = groups.dump();
  } catch (const Json::exception&) {
    // Replacing what is no UTF-8, as for the info, would give a file without the tensors it speaks of.
    return invalid("a checkpoint cannot name a tensor in something other than UTF-8");
  }
  const Metadata metadata = {
      {std::string(kFormatKey), format_text},
      {std::string(kInfoKey), described_info},
      {std::string(kGroupsKey), described_groups},
      {std::string(kChecksumKey), checksum_of(format_text, described_info, described_groups)}};
  return write_safetensors(path, tensors, metadata, disk);
}

Result<CheckpointInfo> read_checkpoint_info(const std::filesystem::path& path, Disk& disk) {
  W5XDE_TRY(const SafetensorsFile file, SafetensorsFile::open(path, disk));
  W5XDE_TRY(const Described described, read_described(file.contents().metadata));
  return parse_info(described.info);
}

Result<CheckpointFile> CheckpointFile::open(const std::filesystem::path& path, Disk& disk) {
  auto opened = SafetensorsFile::open(path, disk);
  if (!opened.ok()) {
    Error error = std::move(opened).error();
    // A dtype that this w5xde does not know: in no format has a checkpoint one.
    if (error.kind == ErrorKind::incompatible) error.kind = ErrorKind::invalid;
    return error;
  }
  SafetensorsFile file = std::move(opened).value();
  auto read = [&]() -> Result<CheckpointFile> {
    W5XDE_TRY(const Described described, read_described(file.contents().metadata));
    W5XDE_TRY(CheckpointInfo info, parse_info(described.info));
    const Json json = Json::parse(described.groups, nullptr, false);
    if (!json.is_array()) return corrupt("the checkpoint does not say which groups it has");
    TensorsByName tensors;
    for (const NamedTensor& named : file.contents().tensors) tensors.emplace(named.name, &named.tensor);
    std::vector<CheckpointGroup> groups;
    for (const Json& group_json : json) {
      W5XDE_TRY(CheckpointGroup group, read_group(group_json, tensors));
      groups.push_back(std::move(group));
    }
    if (!tensors.empty()) return corrupt("{} tensors belong to no group", tensors.size());
    return CheckpointFile(std::move(file), std::move(info), std::move(groups));
  }();
  if (!read.ok()) return std::move(read).error().within(path.string());
  return read;
}

bool is_checkpoint(const SafetensorsContents& file) {
  return file.metadata.contains(kFormatKey);
}

const CheckpointGroup* CheckpointFile::find(std::string_view group) const {
  const auto found = std::ranges::find(groups_, group, &CheckpointGroup::name);
  return found == groups_.end() ? nullptr : &*found;
}

std::shared_ptr<const BlockLayout> CheckpointFile::layout_of(std::string_view group) const {
  const CheckpointGroup* found = find(group);
  return found ? found->layout : nullptr;
}

Status CheckpointFile::read(std::string_view group, const BlockLayout& layout,
                            std::span<float> values) const {
  const CheckpointGroup* written = find(group);
  if (!written) return invalid("the checkpoint has no group '{}'", group);
  if (values.size() != layout.floats())
    return invalid("{} floats for a layout of {}", values.size(), layout.floats());
  const auto entries = written->layout->entries();
  std::unordered_map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < entries.size(); ++i) places.emplace(entries[i].name, i);
  if (entries.size() != layout.entries().size())
    return invalid("group '{}' of the checkpoint has {} tensors, the model {}", group, entries.size(),
                   layout.entries().size());
  for (const auto& entry : layout.entries()) {
    const auto place = places.find(entry.name);
    if (place == places.end())
      return invalid("group '{}' of the checkpoint has no tensor '{}'", group, entry.name);
    if (entries[place->second].shape != entry.shape)
      return invalid("tensor '{}' of group '{}' is {} in the checkpoint and {} in the model", entry.name,
                     group, entries[place->second].shape.to_string(), entry.shape.to_string());
  }
  for (const auto& entry : layout.entries()) {
    const Bytes bytes = written->tensors[places.at(entry.name)];
    const MutableBytes target = std::as_writable_bytes(values.subspan(entry.offset, entry.shape.elements()));
    std::ranges::copy(bytes, target.begin());
  }
  return {};
}

}  // namespace w5xde
