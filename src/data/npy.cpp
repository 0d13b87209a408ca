#include "data/npy.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/errors.h"
#include "base/file.h"

namespace w5xde {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// NumPy itself distrusts headers of more than 10,000.
constexpr std::uint32_t kHeaderBytesMax = 10'000;

struct Description {
  std::optional<std::string_view> dtype;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

struct NumpyName {
  std::string_view name;
  DType dtype;
};

constexpr std::array<NumpyName, 9> kNumpyNames = {{{"<f4", DType::f32},
                                                   {"<f8", DType::f64},
                                                   {"<f2", DType::f16},
                                                   {"|u1", DType::u8},
                                                   {"|i1", DType::i8},
                                                   {"<i2", DType::i16},
                                                   {"<i4", DType::i32},
                                                   {"<i8", DType::i64},
                                                   {"|b1", DType::boolean}}};

Error bad_header(std::string_view why) {
  return corrupt("the .npy header {}; write the file again with numpy.save", why);
}

// Reads the few Python literals that a header has, each with the white space before it.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool take(std::string_view token) {
    skip_space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }

  std::optional<std::string_view> take_string() {
    skip_space();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const auto end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    const auto text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::optional<std::int64_t> take_number() {
    skip_space();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc{}) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return number;
  }

  bool at_end() {
    skip_space();
    return rest_.empty();
  }

 private:
  void skip_space() {
    const auto first = rest_.find_first_not_of(" \n");
    rest_.remove_prefix(first == std::string_view::npos ? rest_.size() : first);
  }

  std::string_view rest_;
};

Status read_shape(Scanner& scanner, Description& description) {
  std::vector<std::int64_t> dims;
  if (!scanner.take("(")) return bad_header("has no shape");
  while (!scanner.take(")")) {
    const auto dim = scanner.take_number();
    if (!dim || dims.size() == kRankMax) return bad_header("has a shape that is none");
    dims.push_back(*dim);
    if (!scanner.take(",")) {
      if (!scanner.take(")")) return bad_header("has a shape that is none");
      break;
    }
  }
  auto shape = Shape::make(dims);
  if (!shape) return bad_header("has an impossible shape: " + shape.error().message);
  description.shape = *shape;
  return {};
}

Status read_value(Scanner& scanner, std::string_view key, Description& description) {
  if (key == "descr" && !description.dtype) {
    if (scanner.take("["))
      return invalid("a .npy file of structured records is not read; save one plain array a file");
    description.dtype = scanner.take_string();
    return description.dtype ? Status() : bad_header("has no dtype");
  }
  if (key == "fortran_order" && !description.fortran_order) {
    description.fortran_order = scanner.take("True");
    return *description.fortran_order || scanner.take("False") ? Status()
                                                               : bad_header("does not tell its order");
  }
  if (key == "shape" && !description.shape) return read_shape(scanner, description);
  return bad_header("has an unknown key");
}

Result<Description> parse_description(std::string_view text) {
  Scanner scanner(text);
  Description description;
  if (!scanner.take("{")) return bad_header("is no dictionary");
  while (!scanner.take("}")) {
    const auto key = scanner.take_string();
    if (!key || !scanner.take(":")) return bad_header("has an unknown key");
    W5XDE_CHECK(read_value(scanner, *key, description));
    if (!scanner.take(",")) {
      if (!scanner.take("}")) return bad_header("does not end");
      break;
    }
  }
  if (!scanner.at_end()) return bad_header("goes on after its end");
  if (!description.dtype) return bad_header("lacks 'descr'");
  if (!description.fortran_order) return bad_header("lacks 'fortran_order'");
  if (!description.shape) return bad_header("lacks 'shape'");
  return description;
}

Result<DType> dtype_of(std::string_view name) {
  for (const NumpyName& known : kNumpyNames) {
    if (known.name == name) return known.dtype;
  }
  return invalid(
      "dtype '{}' is not read. Convert the array and save it again: array.astype('<f4') for "
      "inputs and values, array.astype('<i8') for classes",
      name);
}

// The header's text, with what comes before it checked and read.
Result<std::string_view> take_header(ByteReader& reader) {
  if (text_of(reader.read_bytes(kMagic.size())) != kMagic)
    return corrupt("this is not a .npy file; write one with numpy.save");
  const auto major = reader.read<std::uint8_t>();
  const auto minor = reader.read<std::uint8_t>();
  if (!reader.exhausted() && major != 1 && major != 2)
    return incompatible(
        ".npy version {}.{} is not read; save one plain array a file, which makes version 1.0", major, minor);
  const std::uint32_t header_bytes =
      major == 1 ? std::uint32_t{reader.read<std::uint16_t>()} : reader.read<std::uint32_t>();
  if (header_bytes > kHeaderBytesMax)
    return bad_header(fmt::format("claims {} bytes, {} are allowed", header_bytes, kHeaderBytesMax));
  const Bytes header = reader.read_bytes(header_bytes);
  if (reader.exhausted()) return corrupt("the .npy file ends within its header; get it again");
  return text_of(header);
}

Result<Array> open_npy_array(const std::filesystem::path& path) {
  W5XDE_TRY(MappedFile file, MappedFile::open(path));
  auto tensor = parse_npy(file.bytes());
  if (!tensor) return std::move(tensor).error().within(path.string());
  return Array{path.string(), *tensor, std::make_shared<MappedFile>(std::move(file)), path.stem().string()};
}

}  // namespace

Result<NpyArray> parse_npy_array(Bytes file) {
  ByteReader reader(file);
  W5XDE_TRY(const std::string_view header, take_header(reader));
  W5XDE_TRY(const Description description, parse_description(header));
  if (*description.fortran_order)
    return invalid(
        "the array is in Fortran order. Save it in C order: "
        "numpy.save(path, numpy.ascontiguousarray(array))");
  return NpyArray{*description.dtype, *description.shape, reader.rest()};
}

Result<TensorView> parse_npy(Bytes file) {
  W5XDE_TRY(const NpyArray array, parse_npy_array(file));
  W5XDE_TRY(const DType dtype, dtype_of(array.dtype));
  const std::uint64_t expected = array.shape.elements() * size_of(dtype);
  if (array.elements.size() != expected)
    return corrupt("shape {} of {} needs {} bytes, the file has {}; get it again", array.shape.to_string(),
                   name_of(dtype), expected, array.elements.size());
  return TensorView(array.elements, dtype, array.shape);
}

std::string npy_header_of(DType dtype, const Shape& shape) {
  const auto* const known = std::ranges::find(kNumpyNames, dtype, &NumpyName::dtype);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", known->name);
  for (const std::int64_t dim : shape.dims()) text += fmt::format("{}, ", dim);
  // Python takes a comma behind the last one, and needs it behind the only one.
  if (shape.rank() > 0) text.pop_back();
  text += "), }";
  constexpr std::size_t kBefore = kMagic.size() + 4;
  text.resize(align_up(kBefore + text.size() + 1, 64) - kBefore - 1, ' ');
  text += '\n';
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

Result<SharedDataset> open_npy(std::string_view place, std::optional<std::int64_t> ignored) {
  std::vector<Array> arrays;
  for (std::string_view rest = place; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    W5XDE_TRY(arrays.emplace_back(), open_npy_array(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (arrays.size() < 2)
    return invalid(
        "npy: takes two files or more with commas between them, the targets last: npy:X.npy,Y.npy");
  Array targets = std::move(arrays.back());
  arrays.pop_back();
  return make_array_dataset(std::move(arrays), std::move(targets), {.ignored = ignored});
}

}  // namespace w5xde
