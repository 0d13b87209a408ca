// What all charts are drawn with.
#pragma once

#include <string>
#include <string_view>

namespace w5xde {

// As text between tags or in quotes.
std::string escape(std::string_view text);

}  // namespace w5xde
