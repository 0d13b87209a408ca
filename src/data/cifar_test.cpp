#include "data/cifar.h"

#include <gtest/gtest.h>

#include <fstream>
#include <vector>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

// Images whose bytes are all their number, in classes 0, 1, 2, …
std::string images(int first, int count) {
  std::string bytes;
  for (int i = first; i < first + count; ++i) {
    bytes += static_cast<char>(i % 10);
    bytes.append(3072, static_cast<char>(i));
  }
  return bytes;
}

class CifarTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::string error_of(Split split = Split::train) const {
    const auto opened = open_cifar10(folder_.path().string(), split);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? "" : opened.error().message;
  }

  TemporaryFolder folder_;
};

TEST_F(CifarTest, samples_are_the_images_of_all_files_in_their_order) {
  write("data_batch_1.bin", images(0, 3));
  write("data_batch_2.bin", images(3, 4));
  write("test_batch.bin", images(20, 2));
  const auto train = open_cifar10(folder_.path().string(), Split::train).value();
  EXPECT_EQ(train->samples(), 7u);
  EXPECT_EQ(train->classes(), 10u);
  EXPECT_EQ(train->inputs()[0].shape, (Shape{3, 32, 32}));
  const std::vector<std::uint32_t> numbers = {6, 0, 2, 3, 6};
  std::vector<std::byte> inputs(numbers.size() * 3072), targets(numbers.size());
  const MutableBytes memory(inputs);
  ASSERT_TRUE(train->gather(numbers, {&memory, 1}, targets).ok());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(targets[i], static_cast<std::byte>(numbers[i]));
    EXPECT_EQ(inputs[i * 3072], static_cast<std::byte>(numbers[i]));
    EXPECT_EQ(inputs[i * 3072 + 3071], static_cast<std::byte>(numbers[i]));
  }
  EXPECT_EQ(open_cifar10(folder_.path().string(), Split::test).value()->samples(), 2u);
}

TEST_F(CifarTest, what_is_no_such_folder_or_file_is_named) {
  EXPECT_NE(error_of().find("no data_batch_1.bin"), std::string::npos);
  EXPECT_EQ(open_cifar10(folder_.path().string(), Split::test).value(), nullptr);
  write("data_batch_1.bin", images(0, 3).substr(1));
  EXPECT_NE(error_of().find("data_batch_1.bin has 9218 bytes"), std::string::npos);
  write("data_batch_1.bin", images(0, 1) + std::string(1, '\x0b') + std::string(3072, 'x'));
  EXPECT_NE(error_of().find("image 1 has class 11"), std::string::npos);
}

}  // namespace
}  // namespace w5xde
