#include "tensor/safetensors.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/errors.h"

namespace w5xde {

namespace {

using Json = nlohmann::json;

// A hundred thousand tensors. Parsed JSON takes up to thirty times as much memory as its text.
constexpr std::uint64_t kHeaderBytesMax = std::uint64_t{16} << 20;
constexpr int kHeaderDepthMax = 3;  // the header, a tensor, its shape
constexpr std::string_view kMetadataKey = "__metadata__";

// "F32", "BOOL", …
std::string format_name(DType dtype) {
  std::string name(name_of(dtype));
  std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

// The format has no name for them.
bool is_complex(DType dtype) {
  return dtype == DType::c64 || dtype == DType::c128;
}

// What one entry of the header says, before it is believed.
struct Described {
  std::string name;
  DType dtype;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Result<DType> read_dtype(const Json& entry, const std::string& name) {
  const auto found = entry.find("dtype");
  if (found == entry.end() || !found->is_string()) return corrupt("tensor '{}' has no dtype", name);
  const auto& text = found->get_ref<const std::string&>();
  for (const DType dtype : kDTypes) {
    if (format_name(dtype) == text && !is_complex(dtype)) return dtype;
  }
  return incompatible("tensor '{}' has dtype '{}', which is not supported", name, text);
}

Result<Shape> read_shape(const Json& entry, const std::string& name) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array()) return corrupt("tensor '{}' has no shape", name);
  std::vector<std::int64_t> dims;
  for (const Json& dim : *found) {
    // Larger ones would be negative as int64, and Shape refuses those.
    if (!dim.is_number_unsigned() || dims.size() == kRankMax)
      return corrupt("tensor '{}' has a shape that is none", name);
    dims.push_back(dim.get<std::int64_t>());
  }
  auto shape = Shape::make(dims);
  if (!shape) return corrupt("tensor '{}': {}", name, shape.error().message);
  return shape;
}

Result<Described> read_entry(const std::string& name, const Json& entry) {
  if (!entry.is_object()) return corrupt("tensor '{}' is not described by an object", name);
  Described described;
  described.name = name;
  W5XDE_TRY(described.dtype, read_dtype(entry, name));
  W5XDE_TRY(described.shape, read_shape(entry, name));
  const auto offsets = entry.find("data_offsets");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2 ||
      !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned())
    return corrupt("tensor '{}' has no data_offsets", name);
  described.begin = (*offsets)[0].get<std::uint64_t>();
  described.end = (*offsets)[1].get<std::uint64_t>();
  return described;
}

Result<Metadata> read_metadata(const Json& entry) {
  if (!entry.is_object()) return corrupt("__metadata__ is not an object");
  Metadata metadata;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return corrupt("metadata '{}' is not a string", key);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

// The tensors must lie one after the other, from the first byte of data to the last.
Result<std::vector<NamedTensor>> place(std::vector<Described> described, Bytes data) {
  std::ranges::sort(described, {}, [](const Described& one) { return std::pair(one.begin, one.end); });
  std::vector<NamedTensor> tensors;
  tensors.reserve(described.size());
  std::uint64_t at = 0;
  for (Described& tensor : described) {
    const std::uint64_t size = tensor.shape.elements() * size_of(tensor.dtype);
    if (tensor.begin != at || tensor.end < tensor.begin || tensor.end - tensor.begin != size ||
        tensor.end > data.size())
      return corrupt("tensor '{}' claims bytes {} to {}; expected {} to {} of {}", tensor.name, tensor.begin,
                     tensor.end, at, at + size, data.size());
    const Bytes bytes = data.subspan(at, size);
    at = tensor.end;
    tensors.push_back({std::move(tensor.name), TensorView(bytes, tensor.dtype, tensor.shape)});
  }
  if (at != data.size()) return corrupt("{} bytes of data belong to no tensor", data.size() - at);
  return tensors;
}

// Nesting costs the parser memory for every level, and an honest header has three.
bool too_deep(std::string_view json) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kHeaderDepthMax) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

// A JSON object may repeat a key, and the parser would keep one of the two in silence.
Result<Json> parse_header(std::string_view text) {
  if (too_deep(text)) return corrupt("the safetensors header is nested deeper than any tensor's description");
  bool repeated = false;
  std::vector<std::vector<std::string>> keys;
  const auto watch = [&](int, nlohmann::json::parse_event_t event, Json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) {
      std::ranges::sort(keys.back());
      repeated = repeated || std::ranges::adjacent_find(keys.back()) != keys.back().end();
      keys.pop_back();
    }
    if (event == Event::key) keys.back().push_back(value.get<std::string>());
    return true;
  };
  Json header = Json::parse(text, watch, false);
  if (header.is_discarded() || !header.is_object())
    return corrupt("the safetensors header is not a JSON object");
  if (repeated) return corrupt("the safetensors header names something twice");
  return header;
}

}  // namespace

const TensorView* SafetensorsContents::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &found->tensor;
}

Result<SafetensorsContents> parse_safetensors(Bytes file) {
  ByteReader reader(file);
  const auto header_bytes = reader.read<std::uint64_t>();
  if (reader.exhausted() || header_bytes > kHeaderBytesMax)
    return corrupt("this is not a safetensors file; safetensors.torch.save_file writes one");
  if (header_bytes > reader.rest().size())
    return corrupt("the file ends within its header: that has {} bytes, the whole file {}; get it again",
                   header_bytes, file.size());
  W5XDE_TRY(const Json header, parse_header(text_of(reader.read_bytes(header_bytes))));

  SafetensorsContents contents;
  std::vector<Described> described;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataKey) {
      W5XDE_TRY(contents.metadata, read_metadata(entry));
    } else {
      W5XDE_TRY(Described tensor, read_entry(name, entry));
      described.push_back(std::move(tensor));
    }
  }
  W5XDE_TRY(contents.tensors, place(std::move(described), reader.rest()));
  return contents;
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path, Disk& disk) {
  W5XDE_TRY(MappedFile file, disk.map(path));
  auto contents = parse_safetensors(file.bytes());
  if (!contents) return std::move(contents).error().within(path.string());
  return SafetensorsFile(std::move(file), std::move(contents).value());
}

Status write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                         const Metadata& metadata, Disk& disk) {
  Json header = Json::object();
  if (!metadata.empty()) header[std::string(kMetadataKey)] = metadata;
  std::vector<Bytes> parts(2);
  std::uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    if (name == kMetadataKey || header.contains(name))
      return invalid("tensor name '{}' is reserved or used twice", name);
    if (is_complex(tensor.dtype())) return invalid("tensor '{}' is of complex numbers", name);
    header[name] = {{"dtype", format_name(tensor.dtype())},
                    {"shape", tensor.shape().dims()},
                    {"data_offsets", {offset, offset + tensor.byte_count()}}};
    parts.push_back(tensor.bytes());
    offset += tensor.byte_count();
  }

  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Spaces, so that the data starts at a multiple of kAlignment in the file and in the mapping of it.
  text.resize(align_up(text.size() + sizeof(std::uint64_t), kAlignment) - sizeof(std::uint64_t), ' ');
  // A file that could not be read again must not take the place of one that can be.
  if (text.size() > kHeaderBytesMax)
    return overloaded("a safetensors header of {} bytes; at most {}", text.size(), kHeaderBytesMax);
  std::array<std::byte, sizeof(std::uint64_t)> length{};
  store<std::uint64_t>(length.data(), text.size());
  parts[0] = length;
  parts[1] = bytes_of(text);
  return write_file_atomically(path, parts, disk);
}

}  // namespace w5xde
