#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace w5xde {

// For a terminal of 80 columns: examples, what the command does, its flags: names and defaults on the left,
// wrapped descriptions on the right. --help leaves out the settings that few people change; --help-all, which
// is AppFormatMode::All, has all of them.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const override;
};

// The first example that a command's footer has: "w5xde join 192.168.1.10:5555".
std::string example_of(const CLI::App& command);

}  // namespace w5xde
