#include "record/checkpoint.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/random.h"
#include "support/full_disk.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kFloatsMax = 1 << 20;

std::shared_ptr<const BlockLayout> layout_of(std::vector<BlockLayout::Entry> entries) {
  return BlockLayout::make(std::move(entries), kFloatsMax).value();
}

// Every float another, so that one in the wrong place shows.
ParameterBlock counted_block(const std::shared_ptr<const BlockLayout>& layout, float first) {
  ParameterBlock block(layout);
  for (const auto& entry : layout->entries()) {
    for (float& value : block.values_of(entry)) value = first++;
  }
  return block;
}

NamedBlock as_group(const std::string& group, const ParameterBlock& block) {
  return {group, &block.layout(), block.values()};
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

CheckpointInfo some_info() {
  CheckpointInfo info;
  info.step = 123;
  info.version = 124;
  info.next_slot = 123 * 8;
  info.slots_ahead = {{984, 986}, {990, 1000}};
  info.seed = std::numeric_limits<std::uint64_t>::max();  // past what a double can hold
  info.optimizer_steps = 122;
  info.steps_without_gradient = {{"0.bias", 3}, {"scale", 122}};
  info.samples_committed = 31'488;
  info.slots_committed = 984;
  info.slots_leased_again = 3;
  info.duplicates_dropped = 1;
  info.feedback_lost = 2;
  info.data_fingerprint = "0123456789abcdef";
  info.model_hash = "99aa06d3014798d86001c324468d497f";
  info.loss_first = 2.302585092994046;
  info.loss_last = 0.1;
  info.loss_total = 1e-300;
  info.seconds = 12.25;
  info.model = "résumé \"net\"";
  info.loss = "own";
  info.engine = "torch 2.1";
  info.processor = "x86-64";
  info.model_fingerprint = 0xfedcba9876543210;
  info.evaluation_loss = 0.25;
  info.lowest_loss = 0.125;
  info.evaluations_since_lowest = 3;
  info.batch_growth = BatchGrowthState{.steps = 123, .noise = 0.1, .signal = -1e-300, .growths = {}};
  info.batch_growth->growths = {{60, 256, 512, 5210.25, 0.1, 0.2}, {120, 512, 1024, 1e9, 0.2, 0.4}};
  return info;
}

class Checkpoint : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_ / "step-000000123.safetensors"; }

  TemporaryFolder folder_;
  std::shared_ptr<const BlockLayout> layout_ =
      layout_of({{"2.weight", Shape{2, 3}}, {"0.bias", Shape{5}}, {"scale", Shape{}}, {"none", Shape{0, 4}}});
  ParameterBlock parameters_ = counted_block(layout_, 1);
};

TEST_F(Checkpoint, gives_back_what_was_written) {
  const auto buffers_layout = layout_of({{"bn/running_mean", Shape{7}}});
  const ParameterBlock momentum = counted_block(layout_, 100);
  const ParameterBlock buffers = counted_block(buffers_layout, 200);
  const std::vector<NamedBlock> blocks = {as_group("parameters", parameters_),
                                          as_group("optimizer.momentum", momentum),
                                          as_group("buffers", buffers)};
  const Status written = write_checkpoint(path(), some_info(), blocks);
  ASSERT_TRUE(written.ok()) << written.error().to_string();

  const auto file = CheckpointFile::open(path());
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(file->info(), some_info());
  for (const NamedBlock& block : blocks) {
    const auto layout = file->layout_of(block.group);
    ASSERT_NE(layout, nullptr) << block.group;
    EXPECT_EQ(fingerprint_of(*layout), fingerprint_of(*block.layout)) << block.group;
    ParameterBlock read(layout);
    ASSERT_TRUE(file->read(block.group, *layout, read.values()).ok());
    EXPECT_TRUE(same_bits(read.values(), block.values)) << block.group;
  }
  EXPECT_EQ(file->layout_of("optimizer.variance"), nullptr);
}

TEST_F(Checkpoint, keeps_the_order_of_a_group_even_of_tensors_without_elements) {
  const auto layout =
      layout_of({{"z", Shape{0}}, {"m", Shape{2}}, {"y", Shape{0}}, {"a", Shape{0}}, {"b", Shape{1}}});
  const ParameterBlock block = counted_block(layout, 1);
  ASSERT_TRUE(write_checkpoint(path(), {}, std::vector{as_group("parameters", block)}).ok());
  const auto read = CheckpointFile::open(path()).value().layout_of("parameters");
  std::vector<std::string> names;
  for (const auto& entry : read->entries()) names.push_back(entry.name);
  EXPECT_EQ(names, (std::vector<std::string>{"z", "m", "y", "a", "b"}));
}

TEST_F(Checkpoint, keeps_a_group_without_tensors) {
  const ParameterBlock empty(layout_of({}));
  ASSERT_TRUE(write_checkpoint(path(), {}, std::vector{as_group("buffers", empty)}).ok());
  const auto file = CheckpointFile::open(path());
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  ASSERT_NE(file->layout_of("buffers"), nullptr);
  EXPECT_EQ(file->layout_of("buffers")->entries().size(), 0u);
}

TEST_F(Checkpoint, keeps_the_bits_of_floats_that_are_no_numbers) {
  const auto weight = parameters_.values_of(layout_->entries()[0]);
  weight[0] = std::bit_cast<float>(0x7fc12345u);  // a NaN with a payload
  weight[1] = -0.0f;
  weight[2] = std::numeric_limits<float>::denorm_min();
  weight[3] = -std::numeric_limits<float>::infinity();
  ASSERT_TRUE(write_checkpoint(path(), {}, std::vector{as_group("parameters", parameters_)}).ok());
  ParameterBlock read(layout_);
  ASSERT_TRUE(CheckpointFile::open(path()).value().read("parameters", *layout_, read.values()).ok());
  EXPECT_TRUE(same_bits(read.values(), parameters_.values()));
}

TEST_F(Checkpoint, of_a_run_whose_loss_is_no_number_can_be_read) {
  CheckpointInfo info;
  info.loss_last = std::numeric_limits<double>::quiet_NaN();
  info.loss_total = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(write_checkpoint(path(), info, {}).ok());
  const auto file = CheckpointFile::open(path());
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_TRUE(std::isnan(file->info().loss_last));
  EXPECT_TRUE(std::isnan(file->info().loss_total));
  EXPECT_EQ(file->info().evaluation_loss, std::nullopt);
}

TEST_F(Checkpoint, is_read_into_a_block_of_another_order) {
  ASSERT_TRUE(write_checkpoint(path(), {}, std::vector{as_group("parameters", parameters_)}).ok());
  const auto turned =
      layout_of({{"none", Shape{0, 4}}, {"scale", Shape{}}, {"0.bias", Shape{5}}, {"2.weight", Shape{2, 3}}});
  ParameterBlock read(turned);
  ASSERT_TRUE(CheckpointFile::open(path()).value().read("parameters", *turned, read.values()).ok());
  for (const auto& entry : layout_->entries()) {
    EXPECT_TRUE(same_bits(read.values_of(*turned->find(entry.name)), parameters_.values_of(entry)))
        << entry.name;
  }
}

TEST_F(Checkpoint, of_another_model_is_refused_and_touches_nothing) {
  ASSERT_TRUE(write_checkpoint(path(), {}, std::vector{as_group("parameters", parameters_)}).ok());
  const auto file = CheckpointFile::open(path());
  ASSERT_TRUE(file.ok());
  const auto refusal = [&](const std::string& group, std::vector<BlockLayout::Entry> entries) {
    ParameterBlock block(layout_of(std::move(entries)));
    const Status status = file->read(group, block.layout(), block.values());
    EXPECT_TRUE(std::ranges::all_of(block.values(), [](float value) { return value == 0; }));
    return status.ok() ? "accepted" : status.error().to_string();
  };
  EXPECT_EQ(refusal("buffers", {}), "invalid: the checkpoint has no group 'buffers'");
  EXPECT_EQ(refusal("parameters", {{"2.weight", Shape{2, 3}}}),
            "invalid: group 'parameters' of the checkpoint has 4 tensors, the model 1");
  EXPECT_EQ(refusal("parameters",
                    {{"2.weight", Shape{2, 3}}, {"0.bias", Shape{5}}, {"scale", Shape{}}, {"gain", Shape{}}}),
            "invalid: group 'parameters' of the checkpoint has no tensor 'gain'");
  EXPECT_EQ(
      refusal("parameters",
              {{"2.weight", Shape{2, 3}}, {"0.bias", Shape{6}}, {"scale", Shape{}}, {"none", Shape{0, 4}}}),
      "invalid: tensor '0.bias' of group 'parameters' is [5] in the checkpoint and [6] in the model");

  std::vector<float> too_few(3);
  EXPECT_FALSE(file->read("parameters", *layout_, too_few).ok());
}

TEST_F(Checkpoint, that_makes_no_sense_is_not_written) {
  const auto refusal = [&](std::vector<NamedBlock> blocks) {
    const Status status = write_checkpoint(path(), {}, blocks);
    EXPECT_FALSE(std::filesystem::exists(path()));
    return status.ok() ? "written" : status.error().to_string();
  };
  const NamedBlock good = as_group("parameters", parameters_);
  NamedBlock cut = good;
  cut.values = cut.values.first(3);
  EXPECT_EQ(refusal({cut}), "invalid: group 'parameters' has 3 floats, its layout 48");
  EXPECT_EQ(refusal({as_group("", parameters_)}), "invalid: a checkpoint cannot have a group named ''");
  EXPECT_EQ(refusal({as_group("a/b", parameters_)}), "invalid: a checkpoint cannot have a group named 'a/b'");
  EXPECT_EQ(refusal({good, good}), "invalid: a checkpoint cannot have two groups named 'parameters'");
  const ParameterBlock misnamed(layout_of({{"\xff", Shape{1}}}));
  EXPECT_EQ(refusal({as_group("parameters", misnamed)}),
            "invalid: a checkpoint cannot name a tensor in something other than UTF-8");
}

TEST_F(Checkpoint, is_a_safetensors_file_that_any_reader_understands) {
  ASSERT_TRUE(write_checkpoint(path(), some_info(), std::vector{as_group("parameters", parameters_)}).ok());
  const auto file = SafetensorsFile::open(path());
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  const TensorView* bias = file->contents().find("parameters/0.bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_EQ(bias->dtype(), DType::f32);
  EXPECT_EQ(bias->shape(), Shape{5});
  EXPECT_EQ(load<float>(bias->bytes().data()), 7.0f);  // after the six of 2.weight

  const Metadata& metadata = file->contents().metadata;
  EXPECT_EQ(metadata.at("w5xde_checkpoint"), "1");
  const auto info = nlohmann::json::parse(metadata.at("info"));
  EXPECT_EQ(info["step"], 123);
  EXPECT_EQ(info["seed"], std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(info["evaluation_accuracy"].is_null());
  const auto groups = nlohmann::json::parse(metadata.at("groups"));
  EXPECT_EQ(groups[0]["name"], "parameters");
  EXPECT_EQ(groups[0]["tensors"], (std::vector<std::string>{"2.weight", "0.bias", "scale", "none"}));
}

TEST_F(Checkpoint, is_not_any_safetensors_file) {
  ASSERT_TRUE(write_safetensors(path(), {}, {{"format", "pt"}}).ok());
  const auto file = CheckpointFile::open(path());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().to_string(),
            "invalid: " + path().string() + ": this safetensors file is not a checkpoint of w5xde");
}

TEST_F(Checkpoint, of_a_newer_format_is_incompatible) {
  ASSERT_TRUE(write_checkpoint(path(), some_info(), std::vector{as_group("parameters", parameters_)}).ok());
  Metadata metadata = SafetensorsFile::open(path()).value().contents().metadata;
  metadata["w5xde_checkpoint"] = "2";
  metadata["checksum"] =
      fmt::format("{:016x}", hash64(bytes_of("2" + metadata["info"] + metadata["groups"])));
  ASSERT_TRUE(write_safetensors(path(), {}, metadata).ok());
  const auto file = CheckpointFile::open(path());
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().kind, ErrorKind::incompatible);
}

TEST_F(Checkpoint, that_does_not_fit_the_disk_leaves_the_old_one_whole_and_nothing_else) {
  ASSERT_TRUE(write_checkpoint(path(), some_info(), std::vector{as_group("parameters", parameters_)}).ok());
  const ParameterBlock large(layout_of({{"w", Shape{100, 1000}}}));
  Status written;
  {
    const FullDisk full(50'000);
    written = write_checkpoint(path(), {}, std::vector{as_group("parameters", large)});
  }
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().kind, ErrorKind::system);
  const auto file = CheckpointFile::open(path());
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  EXPECT_EQ(file->info().step, 123u);
  const std::filesystem::directory_iterator entries(folder_.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST_F(Checkpoint, stays_readable_while_it_is_deleted) {
  ASSERT_TRUE(write_checkpoint(path(), {}, std::vector{as_group("parameters", parameters_)}).ok());
  auto opened = CheckpointFile::open(path());
  ASSERT_TRUE(opened.ok());
  const CheckpointFile moved = std::move(opened).value();
  std::filesystem::remove(path());
  ParameterBlock read(layout_);
  ASSERT_TRUE(moved.read("parameters", *layout_, read.values()).ok());
  EXPECT_TRUE(same_bits(read.values(), parameters_.values()));
}

std::shared_ptr<const BlockLayout> any_layout() {
  const auto names = *rc::gen::unique<std::vector<std::string>>(
      rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange('!', '~'))));
  std::vector<BlockLayout::Entry> entries;
  for (const std::string& name : names) {
    const auto rank = *rc::gen::inRange<std::size_t>(0, 4);
    const auto dims =
        *rc::gen::container<std::vector<std::int64_t>>(rank, rc::gen::inRange<std::int64_t>(0, 6));
    entries.push_back({name, Shape::make(dims).value()});
  }
  return layout_of(std::move(entries));
}

RC_GTEST_PROP(CheckpointProperty, any_layouts_come_back_bit_for_bit, ()) {
  const TemporaryFolder folder;
  const auto path = folder / "any.safetensors";
  const auto bits = *rc::gen::arbitrary<std::uint64_t>();
  std::vector<ParameterBlock> written;
  std::vector<NamedBlock> blocks;
  const auto count = *rc::gen::inRange<std::size_t>(0, 4);
  for (std::size_t i = 0; i < count; ++i) {
    written.emplace_back(any_layout());
    Random random(bits + i);
    for (const auto& entry : written.back().layout().entries()) {
      for (float& value : written.back().values_of(entry))
        value = std::bit_cast<float>(static_cast<std::uint32_t>(random.next()));
    }
  }
  for (std::size_t i = 0; i < count; ++i)
    blocks.push_back(as_group("group " + std::to_string(i), written[i]));
  CheckpointInfo info;
  info.seed = bits;
  RC_ASSERT(write_checkpoint(path, info, blocks).ok());

  const auto file = CheckpointFile::open(path);
  RC_ASSERT(file.ok());
  RC_ASSERT(file->info() == info);
  for (const NamedBlock& block : blocks) {
    RC_ASSERT(fingerprint_of(*file->layout_of(block.group)) == fingerprint_of(*block.layout));
    ParameterBlock read(file->layout_of(block.group));
    RC_ASSERT(file->read(block.group, *block.layout, read.values()).ok());
    RC_ASSERT(same_bits(read.values(), block.values));
  }
}

}  // namespace
}  // namespace w5xde
