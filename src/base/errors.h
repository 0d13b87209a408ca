// Errors with a formatted message: corrupt("a frame of {} bytes", bytes).
#pragma once

#include <fmt/format.h>

#include <utility>

#include "w5xde/result.h"

namespace w5xde {

template <class First, class... More>
Error invalid(fmt::format_string<First, More...> text, First&& first, More&&... more) {
  return invalid(fmt::format(text, std::forward<First>(first), std::forward<More>(more)...));
}
template <class First, class... More>
Error corrupt(fmt::format_string<First, More...> text, First&& first, More&&... more) {
  return corrupt(fmt::format(text, std::forward<First>(first), std::forward<More>(more)...));
}
template <class First, class... More>
Error incompatible(fmt::format_string<First, More...> text, First&& first, More&&... more) {
  return incompatible(fmt::format(text, std::forward<First>(first), std::forward<More>(more)...));
}
template <class First, class... More>
Error overloaded(fmt::format_string<First, More...> text, First&& first, More&&... more) {
  return overloaded(fmt::format(text, std::forward<First>(first), std::forward<More>(more)...));
}
template <class First, class... More>
Error disconnected(fmt::format_string<First, More...> text, First&& first, More&&... more) {
  return disconnected(fmt::format(text, std::forward<First>(first), std::forward<More>(more)...));
}
template <class First, class... More>
Error diverged(fmt::format_string<First, More...> text, First&& first, More&&... more) {
  return diverged(fmt::format(text, std::forward<First>(first), std::forward<More>(more)...));
}

}  // namespace w5xde
