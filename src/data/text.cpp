#include "data/text.h"

#include <string>
#include <utility>

#include "base/file.h"
#include "data/windows.h"

namespace w5xde {

Result<SharedDataset> open_text(std::string_view place, Split split) {
  W5XDE_TRY(const WindowPlace parsed, parse_window_place(place));
  W5XDE_TRY(MappedFile opened, MappedFile::open(parsed.file));
  const auto file = std::make_shared<const MappedFile>(std::move(opened));
  return make_windows({.name = std::string(parsed.file),
                       .type = IdRow::Type::u8,
                       .bytes = file->bytes(),
                       .owner = file,
                       .vocabulary = 256},
                      parsed.context, split);
}

}  // namespace w5xde
