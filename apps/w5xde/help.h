#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "settings.h"

namespace w5xde {

// --help for a terminal of 80 columns: names and defaults on the left, wrapped descriptions on the right.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const override;
};

// The run's settings as flags, under their headings. What is given is collected by name: run.toml and
// resuming need to know which were.
void add_settings(CLI::App& command, Given& given);

}  // namespace w5xde
