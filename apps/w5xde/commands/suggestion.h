#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace w5xde {

// A word that people type, and what it is called here.
struct AlsoCalled {
  std::string_view theirs, ours;
};

// "; did you mean --learning-rate?" for a word of which `known` has a near one, or which `also` translates;
// else ".".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known,
                         std::span<const AlsoCalled> also = {});

// "a, b or c"
std::string in_words(std::vector<std::string> choices);

}  // namespace w5xde
