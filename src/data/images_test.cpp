#include "data/images.h"

#include <gtest/gtest.h>
#include <stb_image_write.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class ImagesTest : public testing::Test {
 protected:
  // A picture whose every pixel is (red, 2, 3).
  void write_png(const std::string& name, int width, int height, int red, int channels = 3) const {
    std::vector<unsigned char> pixels;
    for (int i = 0; i < width * height; ++i) {
      pixels.push_back(static_cast<unsigned char>(red));
      for (int channel = 1; channel < channels; ++channel)
        pixels.push_back(static_cast<unsigned char>(1 + channel));
    }
    std::filesystem::create_directories((folder_ / name).parent_path());
    ASSERT_NE(
        stbi_write_png((folder_ / name).c_str(), width, height, channels, pixels.data(), width * channels),
        0);
  }
  Result<SharedDataset> open(const std::string& more = "", Split split = Split::train) const {
    return open_images(folder_.path().string() + more, split);
  }
  std::string error_of(const std::string& more = "") const {
    const auto opened = open(more);
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? "" : opened.error().message;
  }
  struct Gathered {
    Status status;
    std::vector<std::byte> inputs;
    std::vector<std::int32_t> labels;
  };
  static Gathered gather(const Dataset& data, const std::vector<std::uint32_t>& numbers) {
    Gathered got{{},
                 std::vector<std::byte>(numbers.size() * data.inputs()[0].sample_bytes()),
                 std::vector<std::int32_t>(numbers.size())};
    const MutableBytes inputs(got.inputs);
    got.status = data.gather(numbers, {&inputs, 1}, std::as_writable_bytes(std::span(got.labels)));
    return got;
  }

  TemporaryFolder folder_;
};

TEST_F(ImagesTest, each_folder_is_a_class_and_each_picture_planes_of_pixels) {
  write_png("cats/b.png", 3, 2, 20);
  write_png("cats/a.PNG", 3, 2, 10);
  write_png("birds/x.png", 3, 2, 30);
  std::ofstream(folder_ / "cats/notes.txt") << "not a picture";
  const auto data = open().value();
  EXPECT_EQ(data->samples(), 3u);
  EXPECT_EQ(data->classes(), 2u);
  EXPECT_EQ(data->inputs()[0].shape, (Shape{3, 2, 3}));
  EXPECT_TRUE(data->inputs()[0].pixels);
  const Gathered got = gather(*data, {2, 0, 1});
  ASSERT_TRUE(got.status.ok());
  EXPECT_EQ(got.labels, (std::vector<std::int32_t>{1, 0, 1}));
  const int reds[] = {20, 30, 10};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t at = 0; at < 18; ++at) {
      const int expected = at < 6 ? reds[i] : at < 12 ? 2 : 3;
      EXPECT_EQ(got.inputs[i * 18 + at], static_cast<std::byte>(expected));
    }
  }
}

TEST_F(ImagesTest, folders_train_and_test_are_the_splits) {
  write_png("train/a/1.png", 2, 2, 1);
  write_png("train/b/1.png", 2, 2, 2);
  write_png("train/b/2.png", 2, 2, 3);
  write_png("test/a/1.png", 2, 2, 4);
  write_png("test/b/1.png", 2, 2, 5);
  EXPECT_EQ(open().value()->samples(), 3u);
  const auto test = open("", Split::test).value();
  EXPECT_EQ(test->samples(), 2u);
  EXPECT_EQ(gather(*test, {1}).labels, (std::vector<std::int32_t>{1}));
}

TEST_F(ImagesTest, without_folders_of_these_names_there_is_no_test_split) {
  write_png("a/1.png", 2, 2, 1);
  EXPECT_EQ(open("", Split::test).value(), nullptr);
}

TEST_F(ImagesTest, pictures_of_any_size_are_scaled_where_a_size_is_asked_for) {
  write_png("a/wide.png", 40, 8, 100);
  write_png("a/high.png", 6, 30, 100);
  EXPECT_NE(error_of().find("different sizes need images:FOLDER,size=64"), std::string::npos);
  const auto data = open(",size=4").value();
  EXPECT_EQ(data->inputs()[0].shape, (Shape{3, 4, 4}));
  const Gathered got = gather(*data, {0, 1});
  ASSERT_TRUE(got.status.ok());
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(got.inputs[i], std::byte{100});
}

TEST_F(ImagesTest, grey_pictures_have_one_plane) {
  write_png("a/1.png", 2, 2, 7, 1);
  const auto data = open().value();
  EXPECT_EQ(data->inputs()[0].shape, (Shape{1, 2, 2}));
  EXPECT_EQ(gather(*data, {0}).inputs, std::vector<std::byte>(4, std::byte{7}));
}

TEST_F(ImagesTest, folders_with_other_classes_are_not_alike) {
  for (const char* name : {"one/cat/1.png", "one/dog/1.png", "two/cat/1.png", "two/cow/1.png"})
    write_png(name, 2, 2, 1);
  const auto one = open("/one").value(), two = open("/two").value();
  EXPECT_TRUE(check_alike(*one, *open("/one").value()).ok());
  EXPECT_NE(
      check_alike(*one, *two).error().message.find("there 'classes: cat, dog', here 'classes: cat, cow'"),
      std::string::npos);
}

TEST_F(ImagesTest, one_picture_in_colour_makes_all_of_them_so) {
  write_png("a/1.png", 2, 2, 7, 1);
  write_png("a/2.png", 2, 2, 20);
  const auto data = open().value();
  EXPECT_EQ(data->inputs()[0].shape, (Shape{3, 2, 2}));
  EXPECT_EQ(gather(*data, {0}).inputs, std::vector<std::byte>(12, std::byte{7}));
}

TEST_F(ImagesTest, the_test_split_has_the_channels_of_the_train_split) {
  write_png("grey/train/a/1.png", 2, 2, 7, 1);
  write_png("grey/test/a/1.png", 2, 2, 20);
  EXPECT_EQ(open("/grey", Split::test).value()->inputs()[0].shape, (Shape{1, 2, 2}));
  write_png("colour/train/a/1.png", 2, 2, 7, 1);
  write_png("colour/train/a/2.png", 2, 2, 7);
  write_png("colour/test/a/1.png", 2, 2, 20, 1);
  EXPECT_EQ(open("/colour", Split::test).value()->inputs()[0].shape, (Shape{3, 2, 2}));
}

TEST_F(ImagesTest, a_class_that_the_train_split_does_not_have_is_named) {
  for (const char* name : {"train/a/1.png", "test/a/1.png", "test/b/1.png"}) write_png(name, 2, 2, 7);
  const auto test = open("", Split::test);
  ASSERT_FALSE(test.ok());
  EXPECT_NE(test.error().message.find("test/b is a class that"), std::string::npos) << test.error().message;
}

TEST_F(ImagesTest, a_name_that_is_too_long_and_a_link_in_a_circle_are_errors_and_end_nothing) {
  EXPECT_NE(error_of("/" + std::string(300, 'x')).find("there is no folder"), std::string::npos);
  write_png("a/1.png", 2, 2, 7);
  std::filesystem::create_symlink("2.png", folder_ / "a/2.png");
  EXPECT_NE(error_of().find("reading the folder " + (folder_ / "a").string()), std::string::npos);
  std::filesystem::remove(folder_ / "a/2.png");
  std::filesystem::create_symlink("nowhere.png", folder_ / "a/2.png");
  EXPECT_EQ(open().value()->samples(), 1u);
}

TEST_F(ImagesTest, what_cannot_be_read_is_named) {
  EXPECT_NE(error_of().find("has no folders"), std::string::npos);
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_NE(error_of().find("empty has no PNG or JPEG files"), std::string::npos);
  write_png("empty/1.png", 2, 2, 1);
  std::ofstream(folder_ / "empty/2.png") << "no picture at all";
  EXPECT_NE(error_of().find("2.png is no PNG or JPEG"), std::string::npos);
  EXPECT_NE(error_of(",size=0").find("'0' is no size"), std::string::npos);
  EXPECT_NE(open_images("/nowhere", Split::train).error().message.find("no folder /nowhere"),
            std::string::npos);
}

TEST_F(ImagesTest, a_picture_that_is_damaged_later_is_an_error_with_its_name) {
  write_png("a/1.png", 32, 32, 1);
  const auto data = open().value();
  std::filesystem::resize_file(folder_ / "a/1.png", 50);
  const Gathered got = gather(*data, {0});
  ASSERT_FALSE(got.status.ok());
  EXPECT_NE(got.status.error().message.find("1.png cannot be read"), std::string::npos)
      << got.status.error().message;
}

}  // namespace
}  // namespace w5xde
