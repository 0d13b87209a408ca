// What the commands have in common. Each is a file of this folder: its flags, and what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "w5xde/result.h"

namespace w5xde {

// What the program exits with; docs/errors.md lists them.
enum ExitCode : int {
  kSuccess = 0,
  kUsage = 2,         // the command line, run.toml or the data is wrong: change it
  kFailed = 3,        // it was right and did not work: the message says what to repair
  kInterrupted = 4,   // stopped by a signal; what was committed is saved, and the run can be resumed
  kIncompatible = 5,  // the other side does not fit: another version, engine or model
  kDiverged = 6,      // training reached NaN or infinity; the last good checkpoint is kept
};

// Prints the error, and returns its code.
ExitCode report(const Error& error);
// As report() where there is an error.
ExitCode exit_code(const Status& status);
ExitCode exit_code(const Result<ExitCode>& code);

// Writes a file of text, whole or not at all. Does nothing when `path` is empty.
Status write_text(const std::filesystem::path& path, const std::string& text);

// What the command line says that there is not, and what may have been meant: "there is no --lerning-rate;
// did you mean --learning-rate?". Empty where every word is known.
std::string unknown_word(const CLI::App& app, int argc, const char* const* argv);

// --help for a terminal of 80 columns: names and defaults on the left, wrapped descriptions on the right.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_help(const CLI::App* command, std::string name, CLI::AppFormatMode mode) const override;
};

// Each adds one command with its flags. When the command line names it, parsing runs it and sets `code`.
void add_train(CLI::App& app, ExitCode& code);
void add_serve(CLI::App& app, ExitCode& code);
void add_join(CLI::App& app, ExitCode& code);
void add_status(CLI::App& app, ExitCode& code);
void add_inspect(CLI::App& app, ExitCode& code);
void add_eval(CLI::App& app, ExitCode& code);
void add_export(CLI::App& app, ExitCode& code);
void add_compare(CLI::App& app, ExitCode& code);
void add_plot(CLI::App& app, ExitCode& code);
void add_plan(CLI::App& app, ExitCode& code);
void add_bench(CLI::App& app, ExitCode& code);  // its subcommands compute and pool, and:
void add_bench_original(CLI::App& bench, ExitCode& code);

}  // namespace w5xde
