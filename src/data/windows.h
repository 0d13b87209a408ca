// What language models learn from: windows of a long row of ids. A window's inputs are `context` ids, its
// targets the id after each of them.
//
// A window begins where the one before it ends, so that an epoch sees each id once; ids at the end that make
// no window are left out. The last tenth of the row is the test split; a row that was named to evaluate on is
// for that as a whole.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "data/array_dataset.h"
#include "data/dataset.h"
#include "w5xde/result.h"

namespace w5xde {

struct IdRow {
  // How an id lies in memory. u16 becomes i32 when it is gathered: the wire has no u16.
  enum class Type { u8, u16, i32, i64 };

  std::string name;  // in errors
  Type type = Type::u8;
  Bytes bytes;
  std::shared_ptr<const void> owner;
  std::uint32_t vocabulary = 0;  // ids are 0 … vocabulary - 1

  std::uint64_t size() const { return bytes.size() / width(); }
  std::uint64_t width() const {
    return type == Type::u8 ? 1 : type == Type::u16 ? 2 : type == Type::i32 ? 4 : 8;
  }
  std::int64_t at(std::uint64_t i) const;
};

// Null for a test split that is shorter than a window; a train split must have one.
Result<SharedDataset> make_windows(IdRow row, std::uint32_t context, Split split);

// "FILE" or "FILE,context=128", which is the default.
struct WindowPlace {
  std::string_view file;
  std::uint32_t context = 128;
};
Result<WindowPlace> parse_window_place(std::string_view place);

}  // namespace w5xde
