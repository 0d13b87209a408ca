#include "commands/suggestion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace w5xde {

namespace {

// How many letters must change, come or go to make one word of the other.
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t same = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({same, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known,
                         std::span<const AlsoCalled> also) {
  // What is meant where something is typed, in the order in which they are preferred.
  std::vector<AlsoCalled> meanings;
  for (const std::string& name : known) meanings.push_back({name, name});
  meanings.insert(meanings.end(), also.begin(), also.end());
  const auto far = [&](const AlsoCalled& meaning) { return distance(word, meaning.theirs); };
  const auto nearest = std::ranges::min_element(meanings, {}, far);
  const bool near = nearest != meanings.end() && far(*nearest) <= std::max<std::size_t>(2, word.size() / 3);
  return near ? fmt::format("; did you mean {}?", nearest->ours) : ".";
}

std::string in_words(std::vector<std::string> choices) {
  if (choices.size() < 2) return choices.empty() ? "" : choices.front();
  const std::string last = std::move(choices.back());
  choices.pop_back();
  return fmt::format("{} or {}", fmt::join(choices, ", "), last);
}

}  // namespace w5xde
