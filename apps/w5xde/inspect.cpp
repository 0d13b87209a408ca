#include "commands.h"

#include <fmt/format.h>

#include "tensor/safetensors.h"

namespace w5xde {

namespace {

std::string size_in_words(std::uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} KB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

ExitCode inspect(const std::filesystem::path& file) {
  const auto opened = SafetensorsFile::open(file);
  if (!opened) {
    fmt::print(stderr, "w5xde inspect: {}\n", opened.error().message);
    return kFailed;
  }
  const SafetensorsContents& contents = opened->contents();
  std::uint64_t elements = 0, bytes = 0;
  for (const auto& [name, tensor] : contents.tensors) {
    fmt::print("{:<40} {:<5} {:<20} {:>10}\n", name, name_of(tensor.dtype()), tensor.shape().to_string(),
               size_in_words(tensor.byte_count()));
    elements += tensor.shape().elements();
    bytes += tensor.byte_count();
  }
  for (const auto& [key, value] : contents.metadata) fmt::print("{} = {}\n", key, value);
  fmt::print("{} tensors, {} numbers, {}\n", contents.tensors.size(), elements, size_in_words(bytes));
  return kSuccess;
}

}  // namespace w5xde
