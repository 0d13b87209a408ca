#include "help.h"

#include <algorithm>
#include <sstream>

namespace w5xde {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kTextColumn = 32;

// UTF-8: bytes that continue a character take no column.
std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

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
  std::string text = CLI::Formatter::make_help(command, std::move(name), mode);
  // One empty line between groups, not two.
  for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

void add_settings(CLI::App& command, Given& given) {
  RunConfig defaults;
  for (const Setting& setting : settings_of(defaults)) {
    command
        .add_option_function<std::string>(
            "--" + setting.name,
            [&given, name = setting.name](const std::string& value) { given[name] = value; }, setting.help)
        ->default_str(setting.get())
        ->group(setting.group);
  }
}

}  // namespace w5xde
