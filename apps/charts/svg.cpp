#include "charts/svg.h"

#include <algorithm>
#include <array>
#include <utility>

namespace w5xde {

std::string escape(std::string_view text) {
  constexpr std::array<std::pair<char, std::string_view>, 5> kEntities = {
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
  std::string out;
  for (const char c : text) {
    const auto* entity = std::ranges::find(kEntities, c, [](const auto& entry) { return entry.first; });
    out += entity == kEntities.end() ? std::string_view(&c, 1) : entity->second;
  }
  return out;
}

}  // namespace w5xde
