#include "data/images.h"

#include <stb_image.h>
#include <stb_image_resize.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "base/errors.h"
#include "base/file.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;

// A picture of more is refused before it is decoded: its header sizes memory.
constexpr int kSideMax = 16384;
constexpr std::uint64_t kPixelsMax = std::uint64_t{1} << 27;

struct Place {
  fs::path folder;
  int side = 0;  // 0: as the pictures are
};

struct Picture {
  fs::path path;
  std::uint32_t label = 0;
};

struct Size {
  int width = 0, height = 0, channels = 0;
};

struct Freed {
  void operator()(stbi_uc* pixels) const { stbi_image_free(pixels); }
};
using Pixels = std::unique_ptr<stbi_uc, Freed>;

Result<Place> parse_place(std::string_view text) {
  constexpr std::string_view kSize = ",size=";
  const std::size_t at = text.rfind(kSize);
  if (at == std::string_view::npos) return Place{.folder = text};
  const std::string_view number = text.substr(at + kSize.size());
  Place place{.folder = text.substr(0, at)};
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), place.side);
  if (error != std::errc() || end != number.data() + number.size() || place.side < 1 || place.side > 1024)
    return invalid("'{}' is no size; type images:FOLDER,size=64, from 1 to 1024", number);
  return place;
}

bool is_picture(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Its folders, or its pictures.
Result<std::vector<fs::path>> sorted(const fs::path& folder, bool folders) {
  std::vector<fs::path> found;
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (!folders && !is_picture(entry->path())) continue;
    if (folders ? entry->is_directory(error) : entry->is_regular_file(error)) found.push_back(entry->path());
    if (error == std::errc::no_such_file_or_directory) error.clear();  // a link to nowhere
    if (error) break;
  }
  if (error) return system_error(fmt::format("reading the folder {}", folder.string()), error.value());
  std::ranges::sort(found);
  return found;
}

Result<Size> size_of_picture(const fs::path& path, Bytes bytes) {
  Size size;
  const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  if (bytes.size() > std::numeric_limits<int>::max() ||
      stbi_info_from_memory(data, static_cast<int>(bytes.size()), &size.width, &size.height,
                            &size.channels) == 0) {
    return corrupt("{} is no PNG or JPEG that can be read; remove it, or get it again", path.string());
  }
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
  if (size.width > kSideMax || size.height > kSideMax || pixels > kPixelsMax)
    return invalid("{} has {} × {} pixels; at most {} of a side and {} in all", path.string(), size.width,
                   size.height, kSideMax, kPixelsMax);
  return size;
}

class ImageFolder final : public Dataset {
 public:
  ImageFolder(std::vector<Picture> pictures, std::vector<std::string> classes, Size size, int side)
      : pictures_(std::move(pictures)), classes_(std::move(classes)), side_(side) {
    const int height = side > 0 ? side : size.height, width = side > 0 ? side : size.width;
    input_ = {.name = "inputs",
              .dtype = DType::u8,
              .shape = {size.channels < 3 ? 1 : 3, height, width},
              .pixels = true};
  }

  std::uint64_t samples() const override { return pictures_.size(); }
  std::span<const Field> inputs() const override { return {&input_, 1}; }
  const Field& targets() const override { return target_; }
  std::uint32_t classes() const override { return static_cast<std::uint32_t>(classes_.size()); }
  std::vector<std::string> legend() const override {
    return {fmt::format("classes: {}", fmt::join(classes_, ", "))};
  }
  bool gathers_slowly() const override { return true; }

  Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                MutableBytes targets) const override {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const Picture& picture = pictures_[numbers[i]];
      W5XDE_CHECK(decode(picture.path, inputs[0].subspan(i * input_.sample_bytes(), input_.sample_bytes())));
      const auto label = static_cast<std::int32_t>(picture.label);
      store(targets.data() + i * sizeof label, label);
    }
    return {};
  }

 private:
  // `out` is as the field says: plane by plane.
  Status decode(const fs::path& path, MutableBytes out) const {
    W5XDE_TRY(const MappedFile file, MappedFile::open(path));
    W5XDE_TRY(const Size promised, size_of_picture(path, file.bytes()));
    const int channels = static_cast<int>(input_.shape[0]);
    Size size = promised;
    const Pixels pixels(stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(file.bytes().data()),
                                              static_cast<int>(file.bytes().size()), &size.width,
                                              &size.height, &size.channels, channels));
    if (!pixels) return corrupt("{} cannot be read: {}", path.string(), stbi_failure_reason());
    const int height = static_cast<int>(input_.shape[1]), width = static_cast<int>(input_.shape[2]);
    const stbi_uc* from = pixels.get();
    std::vector<stbi_uc> scaled;
    if (side_ > 0) {
      const int square = std::min(size.width, size.height);
      const int left = (size.width - square) / 2, top = (size.height - square) / 2;
      scaled.resize(static_cast<std::size_t>(height) * static_cast<std::size_t>(width * channels));
      if (stbir_resize_uint8(from + (top * size.width + left) * channels, square, square,
                             size.width * channels, scaled.data(), width, height, width * channels,
                             channels) == 0)
        return Error{ErrorKind::system, fmt::format("{} cannot be scaled: out of memory", path.string())};
      from = scaled.data();
    } else if (size.width != width || size.height != height) {
      return invalid("{} is {} × {}, and was not when the run began", path.string(), size.width, size.height);
    }
    const std::size_t plane = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
    for (std::size_t channel = 0; channel < input_.shape.elements() / plane; ++channel) {
      for (std::size_t i = 0; i < plane; ++i)
        out[channel * plane + i] =
            static_cast<std::byte>(from[i * static_cast<std::size_t>(channels) + channel]);
    }
    return {};
  }

  std::vector<Picture> pictures_;
  std::vector<std::string> classes_;
  int side_;
  Field input_;
  Field target_{.name = "targets", .dtype = DType::i32, .shape = {}};
};

Result<Size> size_of(const Picture& picture) {
  W5XDE_TRY(const MappedFile file, MappedFile::open(picture.path));
  return size_of_picture(picture.path, file.bytes());
}

// The size of the first picture, which is that of all, and the channels that all need.
Result<Size> check(const std::vector<Picture>& pictures, int side, const TellProgress& progress) {
  Size all;
  std::uint64_t done = 0;
  for (const Picture& picture : pictures) {
    tell(progress, done++, pictures.size());
    W5XDE_TRY(const Size size, size_of(picture));
    if (&picture == pictures.data()) all = size;
    all.channels = std::max(all.channels, size.channels);
    if (side == 0 && (size.width != all.width || size.height != all.height))
      return invalid(
          "{} is {} × {}, and {} is {} × {}; pictures of different sizes need images:FOLDER,size=64",
          picture.path.string(), size.width, size.height, pictures[0].path.string(), all.width, all.height);
  }
  return all;
}

// 3 where one of them is in colour.
Result<int> channels_of(const std::vector<Picture>& pictures) {
  for (const Picture& picture : pictures) {
    W5XDE_TRY(const Size size, size_of(picture));
    if (size.channels >= 3) return 3;
  }
  return 1;
}

// `folder` has a folder for each of these classes.
Result<std::vector<Picture>> find_pictures(const fs::path& folder, const std::vector<std::string>& classes) {
  std::vector<Picture> pictures;
  for (std::uint32_t label = 0; label < classes.size(); ++label) {
    const fs::path of_class = folder / classes[label];
    std::vector<fs::path> files;
    if (is_folder(of_class)) {
      W5XDE_TRY(files, sorted(of_class, false));
    }
    if (files.empty())
      return invalid("{} has no PNG or JPEG files; remove the folder, or put the pictures of its class there",
                     of_class.string());
    for (const fs::path& file : files) pictures.push_back({file, label});
  }
  return pictures;
}

Result<std::vector<std::string>> classes_in(const fs::path& folder) {
  W5XDE_TRY(const auto folders, sorted(folder, true));
  std::vector<std::string> classes;
  for (const fs::path& of_class : folders) classes.push_back(of_class.filename().string());
  return classes;
}

}  // namespace

Result<SharedDataset> open_images(std::string_view place, Split split, const TellProgress& progress) {
  W5XDE_TRY(const Place parsed, parse_place(place));
  if (!is_folder(parsed.folder)) return invalid("there is no folder {}", parsed.folder.string());
  const fs::path test = parsed.folder / "test";
  const bool has_splits = is_folder(parsed.folder / "train") && is_folder(test);
  if (!has_splits && split == Split::test) return SharedDataset();
  const fs::path train = has_splits ? parsed.folder / "train" : parsed.folder;
  W5XDE_TRY(std::vector<std::string> classes, classes_in(train));
  if (classes.empty())
    return invalid("{} has no folders; it is to have one for each class, with its pictures in it",
                   train.string());
  W5XDE_TRY(std::vector<Picture> pictures, find_pictures(split == Split::test ? test : train, classes));
  W5XDE_TRY(Size size, check(pictures, parsed.side, progress));
  if (split == Split::test) {
    W5XDE_TRY(const auto tested, classes_in(test));
    for (const std::string& name : tested) {
      if (std::ranges::find(classes, name) == classes.end())
        return invalid("{} is a class that {} does not have; remove the folder, or train on it too",
                       (test / name).string(), train.string());
    }
    // A model takes what it was trained on: grey pictures become colour ones, and the other way round.
    W5XDE_TRY(const auto trained, find_pictures(train, classes));
    W5XDE_TRY(size.channels, channels_of(trained));
  }
  return SharedDataset(
      std::make_shared<ImageFolder>(std::move(pictures), std::move(classes), size, parsed.side));
}

}  // namespace w5xde
