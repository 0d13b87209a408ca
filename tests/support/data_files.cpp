#include "support/data_files.h"

#include <fmt/format.h>
#include <zlib.h>

#include <fstream>

namespace w5xde {

std::string gzip_of(std::string_view raw) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, raw.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(raw.data()));
  stream.avail_in = static_cast<uInt>(raw.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

void write_file(const std::filesystem::path& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
}

std::string idx_file(std::initializer_list<std::uint32_t> dims, std::string_view elements) {
  std::string file = {'\0', '\0', '\x08', static_cast<char>(dims.size())};
  for (const std::uint32_t dim : dims) {
    for (const int shift : {24, 16, 8, 0}) file += static_cast<char>(dim >> shift);
  }
  return file.append(elements);
}

std::string npy_header(std::string_view dtype, std::string_view shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", dtype, shape);
}

std::string npy_file(std::string_view header, std::string_view elements) {
  std::string text(header);
  text.resize(align_up(10 + text.size() + 1, 64) - 10 - 1, ' ');
  text += '\n';
  std::string file = "\x93NUMPY";
  file.append({'\x01', '\x00', static_cast<char>(text.size() % 256), static_cast<char>(text.size() / 256)});
  return file.append(text).append(elements);
}

testing::AssertionResult says(std::string_view refusal, std::string_view expected) {
  if (refusal.find(expected) != std::string_view::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << refusal << "' should say '" << expected << "'";
}

Gathered gather_from(const Dataset& data, const std::vector<std::uint32_t>& numbers) {
  Gathered gathered;
  std::vector<std::string> inputs;
  for (const Dataset::Field& input : data.inputs())
    inputs.emplace_back(numbers.size() * input.sample_bytes(), '\0');
  std::vector<MutableBytes> places;
  for (std::string& input : inputs) places.push_back(std::as_writable_bytes(std::span(input)));
  gathered.targets.resize(numbers.size() * data.targets().sample_bytes());
  gathered.status = data.gather(numbers, places, std::as_writable_bytes(std::span(gathered.targets)));
  for (const std::string& input : inputs) gathered.inputs += input;
  return gathered;
}

}  // namespace w5xde
