// What a bad disk does to a checkpoint is noticed.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "record/checkpoint.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class CheckpointDamage : public testing::Test {
 protected:
  CheckpointDamage() {
    parameters_.values()[0] = 1.5f;
    momentum_.values()[1] = -2.5f;
    info_.step = 123;
    info_.loss_last = 0.75;
    info_.model = "net";
    const std::vector<NamedBlock> blocks = {{"parameters", layout_.get(), parameters_.values()},
                                            {"momentum", layout_.get(), momentum_.values()}};
    EXPECT_TRUE(write_checkpoint(path_, info_, blocks).ok());
  }

  void overwrite(std::uint64_t at, char byte) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }

  // Whether nothing of what a run resumes from differs from what was written.
  bool reads_as_written(const CheckpointFile& file) const {
    ParameterBlock parameters(layout_);
    ParameterBlock momentum(layout_);
    return file.info() == info_ && file.read("parameters", *layout_, parameters.values()).ok() &&
           file.read("momentum", *layout_, momentum.values()).ok() &&
           fingerprint_of(*file.layout_of("parameters")) == fingerprint_of(*layout_) &&
           std::ranges::equal(parameters.bytes(), parameters_.bytes()) &&
           std::ranges::equal(momentum.bytes(), momentum_.bytes());
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "step-000000123.safetensors";
  std::shared_ptr<const BlockLayout> layout_ =
      BlockLayout::make({{"w", Shape{2, 3}}, {"b", Shape{3}}, {"none", Shape{0, 2}}}, 1000).value();
  ParameterBlock parameters_{layout_};
  ParameterBlock momentum_{layout_};
  CheckpointInfo info_;
};

TEST_F(CheckpointDamage, a_file_truncated_anywhere_is_corrupt) {
  const std::uint64_t size = std::filesystem::file_size(path_);
  std::filesystem::resize_file(path_, size - 1);
  EXPECT_FALSE(CheckpointFile::open(path_).ok());
  for (std::uint64_t sixteenths = 15; sixteenths <= 15; --sixteenths) {
    std::filesystem::resize_file(path_, size * sixteenths / 16);
    const auto file = CheckpointFile::open(path_);
    ASSERT_FALSE(file.ok()) << sixteenths;
    EXPECT_EQ(file.error().kind, ErrorKind::corrupt) << file.error().to_string();
    EXPECT_NE(file.error().message.find(path_.string()), std::string::npos);
  }
}

TEST_F(CheckpointDamage, a_file_that_grew_is_corrupt) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) + 1);
  EXPECT_FALSE(CheckpointFile::open(path_).ok());
}

TEST_F(CheckpointDamage, every_flipped_bit_is_noticed_or_changes_nothing) {
  std::string bytes;
  {
    std::ifstream file(path_, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  unsigned accepted = 0;
  for (std::uint64_t at = 0; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      overwrite(at, static_cast<char>(bytes[at] ^ (1 << bit)));
      const auto file = CheckpointFile::open(path_);
      if (!file.ok()) {
        ASSERT_NE(file.error().kind, ErrorKind::incompatible) << "bit " << bit << " of byte " << at;
        continue;
      }
      ++accepted;
      ASSERT_TRUE(reads_as_written(*file)) << "bit " << bit << " of byte " << at;
    }
    overwrite(at, bytes[at]);
  }
  // Only in the spaces that fill the header up to an aligned size can a bit be of no account.
  EXPECT_LE(accepted, kAlignment);
  const auto file = CheckpointFile::open(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(reads_as_written(*file));
}

TEST_F(CheckpointDamage, a_file_of_zeros_or_of_nothing_is_corrupt) {
  const std::uint64_t size = std::filesystem::file_size(path_);
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(CheckpointFile::open(path_).error().kind, ErrorKind::corrupt);
  std::filesystem::resize_file(path_, size);  // what some file systems leave after a power cut
  EXPECT_EQ(CheckpointFile::open(path_).error().kind, ErrorKind::corrupt);
}

}  // namespace
}  // namespace w5xde
