#include "data/idx.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/errors.h"
#include "base/file.h"
#include "base/limits.h"
#include "data/gzip_reader.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMagicBytes = 4;
constexpr std::byte kTypeU8{0x08};
constexpr std::size_t kHeaderBytesMax = kMagicBytes + kRankMax * sizeof(std::uint32_t);
constexpr std::uint64_t kUnpackedBytesMax = 4 * kGiB;
constexpr std::uint32_t kClassesMin = 10;

// How long the header is that begins with these bytes.
Result<std::size_t> header_bytes_of(Bytes magic) {
  if (magic.size() < kMagicBytes)
    return corrupt("{} bytes are too few for an IDX file; get it again", magic.size());
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0}) {
    return corrupt("this is not an IDX file: it begins with {:02x} {:02x}, not 00 00",
                   std::to_integer<int>(magic[0]), std::to_integer<int>(magic[1]));
  }
  if (magic[2] != kTypeU8)
    return invalid(
        "this IDX file has elements of type 0x{:02x}; only 0x08 (u8) is read. Convert "
        "it to .npy and open it as npy:INPUTS,TARGETS",
        std::to_integer<int>(magic[2]));
  const auto rank = std::to_integer<std::size_t>(magic[3]);
  if (rank == 0 || rank > kRankMax)
    return corrupt("this IDX file claims {} dimensions; 1 to {} make sense", rank, kRankMax);
  return kMagicBytes + rank * sizeof(std::uint32_t);
}

// `header` is as long as header_bytes_of says.
Result<Shape> parse_dims(Bytes header) {
  std::array<std::int64_t, kRankMax> dims{};
  std::size_t rank = 0;
  for (std::size_t at = kMagicBytes; at < header.size(); at += sizeof(std::uint32_t)) {
    dims[rank++] = __builtin_bswap32(load<std::uint32_t>(header.data() + at));
  }
  auto shape = Shape::make(std::span(dims).first(rank));
  if (!shape) return corrupt("the dimensions of this IDX file make no sense: " + shape.error().message);
  return shape;
}

// `labels`: whether the file must be one of labels, or of images.
Result<Array> open_array(const fs::path& path, bool labels) {
  W5XDE_TRY(MappedFile file, MappedFile::open(path));
  auto memory = std::make_shared<AlignedBuffer>();
  const bool packed = is_gzip(file.bytes());
  auto tensor = packed ? unpack_idx(file.bytes(), *memory) : parse_idx(file.bytes());
  if (!tensor) return std::move(tensor).error().within(path.string());
  if ((tensor->shape().rank() == 1) != labels)
    return invalid("{} has shape {}, so it is not a file of {}; are images and labels exchanged?",
                   path.string(), tensor->shape().to_string(), labels ? "labels" : "images");
  if (packed) return Array{path.string(), *tensor, std::move(memory)};
  return Array{path.string(), *tensor, std::make_shared<MappedFile>(std::move(file))};
}

Result<SharedDataset> open_files(const fs::path& images_path, const fs::path& labels_path,
                                 const ClassBounds& bounds) {
  W5XDE_TRY(Array images, open_array(images_path, false));
  W5XDE_TRY(Array labels, open_array(labels_path, true));
  return make_array_dataset({std::move(images)}, std::move(labels), bounds);
}

// The file itself, or its gzip.
std::optional<fs::path> find_file(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  for (const std::string& candidate : {name, name + ".gz"}) {
    if (fs::exists(folder / candidate, ignored)) return folder / candidate;
  }
  return std::nullopt;
}

Result<fs::path> require_file(const fs::path& folder, const std::string& name) {
  if (auto found = find_file(folder, name)) return *found;
  return invalid("there is neither {0} nor {0}.gz in {1}; put it there, or name the files: idx:IMAGES,LABELS",
                 name, folder.string());
}

Result<SharedDataset> open_folder(const fs::path& folder, const std::string& prefix,
                                  const ClassBounds& bounds) {
  W5XDE_TRY(const fs::path images, require_file(folder, prefix + "-images-idx3-ubyte"));
  W5XDE_TRY(const fs::path labels, require_file(folder, prefix + "-labels-idx1-ubyte"));
  return open_files(images, labels, bounds);
}

// The classes of the train split, without its images.
Result<std::uint32_t> train_classes(const fs::path& folder) {
  W5XDE_TRY(const fs::path path, require_file(folder, "train-labels-idx1-ubyte"));
  W5XDE_TRY(const Array labels, open_array(path, true));
  std::uint32_t classes = kClassesMin;
  for (const std::byte label : labels.tensor.bytes()) {
    classes = std::max(classes, std::to_integer<std::uint32_t>(label) + 1);
  }
  return classes;
}

Result<SharedDataset> open_test_split(const fs::path& folder) {
  if (!find_file(folder, "t10k-images-idx3-ubyte") && !find_file(folder, "t10k-labels-idx1-ubyte")) {
    return SharedDataset();
  }
  W5XDE_TRY(const std::uint32_t classes, train_classes(folder));
  return open_folder(folder, "t10k", {.at_least = classes, .at_most = classes});
}

}  // namespace

Result<TensorView> parse_idx(Bytes file) {
  W5XDE_TRY(const std::size_t header_bytes, header_bytes_of(file));
  if (file.size() < header_bytes)
    return corrupt("this IDX file ends within its header of {} bytes; get it again", header_bytes);
  W5XDE_TRY(const Shape shape, parse_dims(file.first(header_bytes)));
  const Bytes elements = file.subspan(header_bytes);
  if (elements.size() != shape.elements())
    return corrupt("shape {} needs {} bytes, the file has {}; get it again", shape.to_string(),
                   shape.elements(), elements.size());
  return TensorView(elements, DType::u8, shape);
}

Result<TensorView> unpack_idx(Bytes gzip_file, AlignedBuffer& memory) {
  GzipReader reader(gzip_file);
  std::array<std::byte, kHeaderBytesMax> header{};
  W5XDE_CHECK(reader.read(std::span(header).first(kMagicBytes)));
  W5XDE_TRY(const std::size_t header_bytes, header_bytes_of(std::span(header).first(kMagicBytes)));
  W5XDE_CHECK(reader.read(std::span(header).first(header_bytes).subspan(kMagicBytes)));
  W5XDE_TRY(const Shape shape, parse_dims(std::span(header).first(header_bytes)));

  // The header may claim anything; what the file can hold at best may not be exceeded.
  if (shape.elements() > gzip_file.size() * kGzipRatioMax)
    return corrupt("shape {} cannot come out of {} bytes of gzip; get it again", shape.to_string(),
                   gzip_file.size());
  if (shape.elements() > kUnpackedBytesMax)
    return invalid(
        "shape {} is too large to unpack into memory ({} bytes at most). Unpack the file "
        "with gunzip: raw files are mapped, whatever their size",
        shape.to_string(), kUnpackedBytesMax);
  const MutableBytes elements = memory.take(shape.elements());
  W5XDE_CHECK(reader.read(elements));
  W5XDE_CHECK(reader.finish());
  return TensorView(elements, DType::u8, shape);
}

Result<SharedDataset> open_idx(std::string_view place, Split split) {
  std::error_code ignored;
  if (fs::is_directory(fs::path(place), ignored)) {
    if (split == Split::test) return open_test_split(fs::path(place));
    return open_folder(fs::path(place), "train", {.at_least = kClassesMin});
  }
  const auto comma = place.find(',');
  if (comma == std::string_view::npos)
    return invalid("there is no folder {}; idx: takes a folder, or two files: idx:IMAGES,LABELS", place);
  if (split == Split::test) return SharedDataset();
  return open_files(place.substr(0, comma), place.substr(comma + 1), {.at_least = kClassesMin});
}

}  // namespace w5xde
