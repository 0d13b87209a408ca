#include "data/tokens.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/errors.h"
#include "base/file.h"
#include "data/npy.h"
#include "data/windows.h"

namespace w5xde {

namespace {

struct TypeName {
  std::string_view name;
  std::string_view numpy;
  IdRow::Type type;
};
constexpr std::array<TypeName, 4> kTypes = {{{"u8", "|u1", IdRow::Type::u8},
                                             {"u16", "<u2", IdRow::Type::u16},
                                             {"i32", "<i4", IdRow::Type::i32},
                                             {"i64", "<i8", IdRow::Type::i64}}};

Status read_npy(IdRow& row) {
  W5XDE_TRY(const NpyArray array, parse_npy_array(row.bytes));
  const auto* known = std::ranges::find(kTypes, array.dtype, &TypeName::numpy);
  if (known == kTypes.end())
    return invalid(
        "ids of dtype '{}' are not read. Save them as u8, u16, i32 or i64, in NumPy with "
        "array.astype('uint16')",
        array.dtype);
  if (array.shape.rank() != 1)
    return invalid("shape {} is not a row of ids; save it with numpy.save(path, array.reshape(-1))",
                   array.shape.to_string());
  row.type = known->type;
  row.bytes = array.elements;
  if (array.elements.size() != array.shape.elements() * row.width())
    return corrupt("shape {} of {} needs {} bytes, the file has {}; get it again", array.shape.to_string(),
                   known->name, array.shape.elements() * row.width(), array.elements.size());
  return {};
}

Status count_vocabulary(IdRow& row) {
  std::int64_t largest = -1;
  for (std::uint64_t i = 0; i < row.size(); ++i) {
    const std::int64_t id = row.at(i);
    if (id < 0 || id >= std::int64_t{kClassesMax})
      return invalid("{}: id {} of the row is {}, but ids are 0 to {}", row.name, i, id, kClassesMax - 1);
    largest = std::max(largest, id);
  }
  row.vocabulary = static_cast<std::uint32_t>(largest + 1);
  return {};
}

// What stands behind the file's last colon; none where that is no type.
const TypeName* type_of(std::string_view file) {
  const auto colon = file.rfind(':');
  if (colon == std::string_view::npos) return nullptr;
  const auto* known = std::ranges::find(kTypes, file.substr(colon + 1), &TypeName::name);
  return known == kTypes.end() ? nullptr : known;
}

}  // namespace

Result<SharedDataset> open_tokens(std::string_view place, Split split) {
  W5XDE_TRY(WindowPlace parsed, parse_window_place(place));
  const TypeName* type = type_of(parsed.file);
  if (type != nullptr) {
    parsed.file.remove_suffix(type->name.size() + 1);
  } else if (!parsed.file.ends_with(".npy")) {
    return invalid(
        "the ids of {} may have any width; name it: tokens:{}:u16, or u8, i32 or i64. A .npy file says it",
        parsed.file, parsed.file);
  }
  W5XDE_TRY(MappedFile opened, MappedFile::open(parsed.file));
  const auto file = std::make_shared<const MappedFile>(std::move(opened));
  IdRow row{.name = std::string(parsed.file), .bytes = file->bytes(), .owner = file};
  if (type == nullptr) {
    if (auto read = read_npy(row); !read.ok()) return std::move(read).error().within(row.name);
  } else {
    row.type = type->type;
    if (row.bytes.size() % row.width() != 0)
      return corrupt("{} has {} bytes, which is no whole number of {} ids; is it of another type?", row.name,
                     row.bytes.size(), type->name);
  }
  W5XDE_CHECK(count_vocabulary(row));
  return make_windows(std::move(row), parsed.context, split);
}

}  // namespace w5xde
