#include "data/idx.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <string>

#include "support/data_files.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

// Three images of 2 × 2 and their labels.
const std::string kImages = idx_file({3, 2, 2}, "abcdefghijkl");
const std::string kLabels = idx_file({3}, std::string("\3\0\7", 3));

std::string refusal_of_file(const std::string& file) {
  return refusal_of(parse_idx(bytes_of(file)));
}

std::string refusal_of_gzip(const std::string& file) {
  AlignedBuffer memory;
  const std::string refusal = refusal_of(unpack_idx(bytes_of(file), memory));
  EXPECT_LE(memory.capacity(), file.size() * 1032);
  return refusal;
}

std::string two_files(const TemporaryFolder& folder, const std::string& images, const std::string& labels) {
  write_file(folder / "images", images);
  write_file(folder / "labels", labels);
  return (folder / "images").string() + "," + (folder / "labels").string();
}

TEST(IdxTest, the_bytes_of_a_file_are_read_as_published) {
  const std::string file(
      "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"
      "abcdef",
      18);
  const auto tensor = parse_idx(bytes_of(file));
  ASSERT_TRUE(tensor.ok()) << tensor.error().message;
  EXPECT_EQ(tensor->shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor->dtype(), DType::u8);
  EXPECT_EQ(text_of(tensor->bytes()), "abcdef");
}

RC_GTEST_PROP(IdxTest, packed_and_raw_files_read_the_same, (const std::string& elements)) {
  const std::string file = idx_file({static_cast<std::uint32_t>(elements.size()), 1, 1}, elements);
  const std::string packed = gzip_of(file);
  AlignedBuffer memory;
  const auto raw_tensor = parse_idx(bytes_of(file));
  const auto tensor = unpack_idx(bytes_of(packed), memory);
  RC_ASSERT(raw_tensor.ok() && tensor.ok());
  RC_ASSERT(raw_tensor->shape() == tensor->shape());
  RC_ASSERT(text_of(raw_tensor->bytes()) == elements);
  RC_ASSERT(text_of(tensor->bytes()) == elements);
}

TEST(IdxTest, each_way_to_be_wrong_is_refused_with_its_reason) {
  EXPECT_TRUE(says(refusal_of_file(""), "0 bytes are too few"));
  EXPECT_TRUE(says(refusal_of_file("PNG image"), "not an IDX file: it begins with 50 4e"));
  EXPECT_TRUE(says(refusal_of_file(std::string("\0\0\x0d\x01\0\0\0\0", 8)), "type 0x0d"));
  EXPECT_TRUE(says(refusal_of_file(std::string("\0\0\x08\0", 4)), "claims 0 dimensions"));
  EXPECT_TRUE(says(refusal_of_file(std::string("\0\0\x08\x09", 4)), "claims 9 dimensions"));
  EXPECT_TRUE(says(refusal_of_file(kImages.substr(0, 11)), "ends within its header of 16 bytes"));
  EXPECT_TRUE(says(refusal_of_file(kImages.substr(0, 20)), "[3, 2, 2] needs 12 bytes, the file has 4"));
  EXPECT_TRUE(says(refusal_of_file(kImages + "!"), "needs 12 bytes, the file has 13"));
  const std::uint32_t huge = 0xffffffff;
  EXPECT_TRUE(says(refusal_of_file(idx_file({huge, huge, huge}, "")), "make no sense"));
}

TEST(IdxTest, a_packed_file_is_held_to_the_same) {
  EXPECT_EQ(refusal_of_gzip(gzip_of(kImages)), "accepted");
  EXPECT_TRUE(says(refusal_of_gzip(gzip_of("PNG image")), "it begins with 50 4e"));
  EXPECT_TRUE(says(refusal_of_gzip(gzip_of(kImages.substr(0, 11))), "ends 7 bytes into a piece of 12"));
  EXPECT_TRUE(says(refusal_of_gzip(gzip_of(kImages.substr(0, 20))), "ends 4 bytes into a piece of 12"));
  EXPECT_TRUE(says(refusal_of_gzip(gzip_of(kImages + "!")), "more bytes than its contents say"));
  EXPECT_TRUE(says(refusal_of_gzip(gzip_of("")), "ends 0 bytes into a piece of 4"));
}

TEST(IdxTest, a_packed_file_that_claims_too_much_costs_no_memory) {
  AlignedBuffer memory;
  const std::string liar = gzip_of(idx_file({0xffffffff, 28, 28}, "few"));
  EXPECT_TRUE(says(refusal_of(unpack_idx(bytes_of(liar), memory)), "cannot come out of"));
  EXPECT_EQ(memory.capacity(), 0u);
  // Long enough that the claim could be true: then the limit holds.
  const std::string longer = gzip_of(idx_file({6'000'000, 28, 28}, "few")) + std::string(5'000'000, 'x');
  EXPECT_TRUE(says(refusal_of(unpack_idx(bytes_of(longer), memory)), "Unpack the file with gunzip"));
  EXPECT_EQ(memory.capacity(), 0u);
}

TEST(IdxTest, two_files_raw_or_packed_are_a_data_set_without_a_test_split) {
  const TemporaryFolder folder;
  for (const bool packed : {false, true}) {
    const std::string place = two_files(folder, packed ? gzip_of(kImages) : kImages, kLabels);
    const auto data = open_idx(place, Split::train);
    ASSERT_TRUE(data.ok()) << data.error().message;
    EXPECT_EQ((*data)->samples(), 3u);
    EXPECT_EQ((*data)->inputs().shape, (Shape{2, 2}));
    EXPECT_EQ((*data)->classes(), 10u);  // though the largest label is 7
    const Gathered gathered = gather_from(**data, {2, 0});
    EXPECT_EQ(gathered.inputs, "ijklabcd");
    EXPECT_EQ(gathered.targets, "\7\3");
    EXPECT_EQ(open_idx(place, Split::test).value(), nullptr);
  }
}

TEST(IdxTest, more_than_ten_classes_are_counted) {
  const TemporaryFolder folder;
  const auto data = open_idx(two_files(folder, kImages, idx_file({3}, "\x01\x2e\x02")), Split::train);
  EXPECT_EQ((*data)->classes(), 47u);
}

TEST(IdxTest, files_that_do_not_go_together_are_refused_by_name) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& images, const std::string& labels) {
    return refusal_of(open_idx(two_files(folder, images, labels), Split::train));
  };
  EXPECT_TRUE(says(refusal(kImages, idx_file({2}, "\1\2")), "/images has 3 samples but "));
  EXPECT_TRUE(says(refusal(kLabels, kImages), "are images and labels exchanged?"));
  EXPECT_TRUE(says(refusal(kImages, kImages), "/labels has shape [3, 2, 2], so it is not a file of labels"));
  EXPECT_TRUE(says(refusal(idx_file({0, 28, 28}, ""), idx_file({0}, "")), "/images is empty"));
  EXPECT_TRUE(says(refusal(kImages + "!", kLabels), "/images: shape [3, 2, 2] needs 12 bytes"));
}

TEST(IdxTest, a_file_that_is_missing_is_named) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "nowhere").string();
  EXPECT_TRUE(says(refusal_of(open_idx(missing, Split::train)), "there is no folder " + missing));
  EXPECT_TRUE(says(refusal_of(open_idx(missing + ",b", Split::train)), "there is no file " + missing));
  const std::string place = folder.path().string();
  EXPECT_TRUE(says(refusal_of(open_idx(place, Split::train)),
                   "neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz in " + place));
  write_file(folder / "train-images-idx3-ubyte", kImages);
  EXPECT_TRUE(says(refusal_of(open_idx(place, Split::train)), "neither train-labels-idx1-ubyte nor"));
}

TEST(IdxTest, the_test_split_of_a_folder_has_the_classes_of_its_train_split) {
  const TemporaryFolder folder;
  const std::string place = folder.path().string();
  write_file(folder / "train-images-idx3-ubyte.gz", gzip_of(kImages));
  write_file(folder / "train-labels-idx1-ubyte", idx_file({3}, "\1\2\x14"));
  EXPECT_EQ((*open_idx(place, Split::train))->classes(), 21u);
  EXPECT_EQ(open_idx(place, Split::test).value(), nullptr);

  write_file(folder / "t10k-images-idx3-ubyte", kImages);
  EXPECT_TRUE(says(refusal_of(open_idx(place, Split::test)), "neither t10k-labels-idx1-ubyte nor"));
  write_file(folder / "t10k-labels-idx1-ubyte", kLabels);
  EXPECT_EQ((*open_idx(place, Split::test))->classes(), 21u);
  write_file(folder / "t10k-labels-idx1-ubyte", idx_file({3}, "\1\2\x15"));
  EXPECT_TRUE(says(refusal_of(open_idx(place, Split::test)), "label of sample 2 is 21"));
}

// Debian's package dataset-fashion-mnist, which scripts/install-deps installs.
TEST(IdxTest, fashion_mnist_is_read_whole) {
  const auto train = open_idx("/usr/share/datasets/fashion-mnist", Split::train);
  ASSERT_TRUE(train.ok()) << train.error().message;
  EXPECT_EQ((*train)->samples(), 60'000u);
  EXPECT_EQ((*train)->inputs().shape, (Shape{28, 28}));
  EXPECT_EQ((*train)->inputs().dtype, DType::u8);
  EXPECT_EQ((*train)->classes(), 10u);
  const auto test = open_idx("/usr/share/datasets/fashion-mnist", Split::test);
  ASSERT_TRUE(test.ok()) << test.error().message;
  EXPECT_EQ((*test)->samples(), 10'000u);
  EXPECT_EQ((*test)->classes(), 10u);

  // Its makers put 6,000 of each class into the one and 1,000 into the other.
  for (const auto& [data, of_each] : {std::pair(*train, 6'000), std::pair(*test, 1'000)}) {
    std::vector<std::uint32_t> all(data->samples());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    std::array<int, 10> seen{};
    for (const char label : gather_from(*data, all).targets) ++seen.at(static_cast<std::size_t>(label));
    for (const int count : seen) EXPECT_EQ(count, of_each);
  }
}

}  // namespace
}  // namespace w5xde
