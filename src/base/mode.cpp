#include "base/mode.h"

#include "base/errors.h"

namespace w5xde {

Result<Mode> parse_mode(std::string_view name) {
  if (name == "sync") return Mode::sync;
  if (name == "async") return Mode::async;
  return invalid("'{}' is no mode; use sync or async", name);
}

std::string_view name_of(Mode mode) {
  return mode == Mode::sync ? "sync" : "async";
}

}  // namespace w5xde
