#include "data/cifar.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/file.h"

namespace w5xde {

namespace {

constexpr std::uint64_t kImageBytes = std::uint64_t{3} * 32 * 32;
constexpr std::uint64_t kRecordBytes = 1 + kImageBytes;
constexpr std::uint32_t kClasses = 10;

class Cifar10 final : public Dataset {
 public:
  explicit Cifar10(std::vector<MappedFile> files) : files_(std::move(files)) {
    for (const MappedFile& file : files_) ends_.push_back(samples() + file.bytes().size() / kRecordBytes);
  }

  std::uint64_t samples() const override { return ends_.empty() ? 0 : ends_.back(); }
  std::span<const Field> inputs() const override { return {&input_, 1}; }
  const Field& targets() const override { return target_; }
  std::uint32_t classes() const override { return kClasses; }

  Status gather(std::span<const std::uint32_t> numbers, std::span<const MutableBytes> inputs,
                MutableBytes targets) const override {
    std::byte* image = inputs[0].data();
    std::byte* label = targets.data();
    for (const std::uint32_t number : numbers) {
      const std::byte* record = record_of(number);
      *label++ = record[0];
      std::memcpy(image, record + 1, kImageBytes);
      image += kImageBytes;
    }
    return {};
  }

 private:
  const std::byte* record_of(std::uint32_t number) const {
    const auto end = std::ranges::upper_bound(ends_, number);
    const std::uint64_t first = end == ends_.begin() ? 0 : *(end - 1);
    return files_[static_cast<std::size_t>(end - ends_.begin())].bytes().data() +
           (number - first) * kRecordBytes;
  }

  std::vector<MappedFile> files_;
  std::vector<std::uint64_t> ends_;  // the number of the sample behind each file's last
  Field input_{.name = "inputs", .dtype = DType::u8, .shape = {3, 32, 32}, .pixels = true};
  Field target_{.name = "targets", .dtype = DType::u8, .shape = {}};
};

Status check(const MappedFile& file, const std::string& name) {
  const Bytes bytes = file.bytes();
  if (bytes.empty() || bytes.size() % kRecordBytes != 0)
    return corrupt("{} has {} bytes, which are no CIFAR-10 images of {} bytes; get it again", name,
                   bytes.size(), kRecordBytes);
  for (std::uint64_t at = 0; at < bytes.size(); at += kRecordBytes) {
    if (std::to_integer<unsigned>(bytes[at]) >= kClasses)
      return corrupt("{}: image {} has class {}, and CIFAR-10 has {}; is it CIFAR-100, or damaged?", name,
                     at / kRecordBytes, std::to_integer<unsigned>(bytes[at]), kClasses);
  }
  return {};
}

}  // namespace

Result<SharedDataset> open_cifar10(std::string_view folder, Split split) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  std::error_code error;  // what cannot be looked at is not there
  if (split == Split::test) {
    if (!fs::exists(fs::path(folder) / "test_batch.bin", error)) return SharedDataset();
    paths.push_back(fs::path(folder) / "test_batch.bin");
  } else {
    for (int i = 1; fs::exists(fs::path(folder) / fmt::format("data_batch_{}.bin", i), error); ++i)
      paths.push_back(fs::path(folder) / fmt::format("data_batch_{}.bin", i));
    if (paths.empty())
      return invalid(
          "{} has no data_batch_1.bin; CIFAR-10's \"binary version\" has it in cifar-10-batches-bin", folder);
  }
  std::vector<MappedFile> files;
  for (const fs::path& path : paths) {
    W5XDE_TRY(MappedFile file, MappedFile::open(path));
    W5XDE_CHECK(check(file, path.string()));
    files.push_back(std::move(file));
  }
  return SharedDataset(std::make_shared<Cifar10>(std::move(files)));
}

}  // namespace w5xde
