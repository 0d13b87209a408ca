// safetensors: the file format of checkpoints and data. u64 header length; a JSON header that maps each
// tensor's name to its dtype, shape and place; the tensors' bytes without holes.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tensor/tensor_view.h"
#include "w5xde/result.h"

namespace w5xde {

struct NamedTensor {
  std::string name;
  TensorView tensor;
};

using Metadata = std::map<std::string, std::string, std::less<>>;

struct SafetensorsContents {
  std::vector<NamedTensor> tensors;  // in the order of their bytes
  Metadata metadata;

  const TensorView* find(std::string_view name) const;
};

// Of a file in memory; the views point into `file`. Everything is checked: the header's length and syntax,
// every dtype and shape, and that the tensors fill the file exactly.
Result<SafetensorsContents> parse_safetensors(Bytes file);

// A file on disk, mapped: opening a large one costs its header only.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::filesystem::path& path, Disk& disk = real_disk());

  const SafetensorsContents& contents() const { return contents_; }

 private:
  SafetensorsFile(MappedFile file, SafetensorsContents contents)
      : file_(std::move(file)), contents_(std::move(contents)) {}

  MappedFile file_;
  SafetensorsContents contents_;
};

// Writes a file whole or not at all. Tensors are contiguous, and not of complex numbers.
Status write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                         const Metadata& metadata, Disk& disk = real_disk());

}  // namespace w5xde
