#include "commands/help.h"

#include <fmt/format.h>

#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "commands/figure_text.h"
#include "settings.h"

namespace w5xde {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumn = 32;
constexpr std::string_view kExampleIndent = "  ";

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

// A footer is "Examples:", examples that are indented, and text.
bool is_example(std::string_view line) {
  return line.starts_with(std::string(kExampleIndent) + "w5xde ");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// All of them, with what is said about them; or the first.
std::string examples(const CLI::App& command, bool all) {
  std::string text;
  for (const std::string& line : lines_of(command.get_footer())) {
    if (line == "Example:" || line == "Examples:") continue;
    text += (is_example(line) ? "$ " + line.substr(kExampleIndent.size()) : line) + '\n';
    if (!all) break;
  }
  return text;
}

// The flags that short help leaves out: settings of a run that stand under other headings than the first. A
// command's own flags under the same headings stay.
std::set<const CLI::Option*> rare_flags(const CLI::App& command) {
  RunConfig config;
  std::set<const CLI::Option*> rare;
  for (const Setting& setting : settings_of(config)) {
    const CLI::Option* option = command.get_option_no_throw("--" + setting.name);
    if (option != nullptr && setting.group != kMainGroup && option->get_group() == setting.group)
      rare.insert(option);
  }
  return rare;
}

std::vector<const CLI::Option*> flags_of(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->nonpositional(); });
}

// Without --help and its like, which every command has.
std::size_t settings_in(const CLI::App& command) {
  std::size_t count = 0;
  for (const CLI::Option* option : flags_of(command)) {
    const bool asks_for_help = option == command.get_help_ptr() || option == command.get_help_all_ptr();
    count += asks_for_help ? 0 : 1;
  }
  return count;
}

}  // namespace

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
  auto left_out = rare_flags(*command);
  if (mode == CLI::AppFormatMode::All) left_out.clear();
  // Where nothing is left out, both helps are the same.
  const bool all = mode == CLI::AppFormatMode::All || left_out.empty();
  std::string text = examples(*command, all) + '\n' + make_description(command) + '\n' +
                     make_usage(command, std::move(name)) + make_positionals(command);
  for (const std::string& group : command->get_groups()) {
    std::vector<const CLI::Option*> shown;
    for (const CLI::Option* option : flags_of(*command)) {
      if (option->get_group() == group && !left_out.contains(option)) shown.push_back(option);
    }
    if (!group.empty() && !shown.empty()) text += make_group(group, false, shown);
  }
  text += make_subcommands(command, CLI::AppFormatMode::Normal);
  if (!all) text += fmt::format("\n--help-all shows all {} settings\n", settings_in(*command));
  return text;
}

std::string example_of(const CLI::App& command) {
  for (const std::string& line : lines_of(command.get_footer())) {
    if (is_example(line)) return line.substr(kExampleIndent.size());
  }
  return {};
}

}  // namespace w5xde
