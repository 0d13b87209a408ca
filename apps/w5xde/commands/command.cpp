#include "commands/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "base/file.h"
#include "commands/figure_text.h"

namespace w5xde {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumn = 32;

std::string entry(const std::string& left, const std::string& text) {
  std::string out = "  " + left;
  std::size_t column = columns_of(out);
  const auto begin_line = [&] {
    out += '\n' + std::string(kTextColumn, ' ');
    column = kTextColumn;
  };
  if (column + 2 > kTextColumn) begin_line();
  out += std::string(kTextColumn - column, ' ');
  column = kTextColumn;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t width = columns_of(word);
    if (column > kTextColumn && column + 1 + width > kColumns) begin_line();
    if (column > kTextColumn) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width;
  }
  return out + '\n';
}

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

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const auto nearest =
      std::ranges::min_element(known, {}, [&](const std::string& other) { return distance(word, other); });
  const bool near =
      nearest != known.end() && distance(word, *nearest) <= std::max<std::size_t>(2, word.size() / 3);
  return near ? fmt::format("; did you mean {}?", *nearest) : ".";
}

}  // namespace

std::string unknown_word(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2) return {};
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  const std::string first = argv[1];
  if (std::ranges::find(commands, first) == commands.end()) {
    if (first.starts_with('-')) return {};
    return fmt::format("there is no command {}{}", first, did_you_mean(first, commands));
  }
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_subcommand(first)->get_options({})) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (int i = 2; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (word.starts_with("--") && std::ranges::find(flags, word) == flags.end())
      return fmt::format("there is no {}{} `w5xde {} --help` lists them", word, did_you_mean(word, flags),
                         first);
  }
  return {};
}

ExitCode report(const Error& error) {
  std::fprintf(stderr, "w5xde: %s\n", error.message.c_str());
  switch (error.kind) {
    case ErrorKind::invalid:
      return kUsage;
    case ErrorKind::incompatible:
      return kIncompatible;
    case ErrorKind::diverged:
      return kDiverged;
    default:
      return kFailed;
  }
}

ExitCode exit_code(const Status& status) {
  return status.ok() ? kSuccess : report(status.error());
}

ExitCode exit_code(const Result<ExitCode>& code) {
  return code.ok() ? *code : report(code.error());
}

Status write_text(const std::filesystem::path& path, const std::string& text) {
  if (path.empty()) return {};
  const Bytes bytes = bytes_of(text);
  return write_file_atomically(path, {&bytes, 1});
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string left = make_option_name(option, is_positional);
  if (!option->get_default_str().empty()) left += " [" + option->get_default_str() + "]";
  return entry(left, option->get_description());
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_help(const CLI::App* command, std::string name,
                                     CLI::AppFormatMode mode) const {
  std::string text = CLI::Formatter::make_help(command, std::move(name), mode);
  // One empty line between groups, not two.
  for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

}  // namespace w5xde
