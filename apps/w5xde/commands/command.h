// What the commands have in common. Each is a file of this folder: its flags, and what it does.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

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

// Refuses a file whose folder is not there: asked before what takes long is begun. An empty `path` is no
// file.
Status check_folder_of(const std::filesystem::path& path);
// Writes a file of text, whole or not at all. Does nothing when `path` is empty.
Status write_text(const std::filesystem::path& path, const std::string& text);

// The program with all of its commands but bench, which others build on. When the command line names one,
// parsing runs it and sets `code`.
std::unique_ptr<CLI::App> make_program(ExitCode& code);

// The first command that takes --FLAG; empty where none does.
std::string command_with_flag(const std::string& flag);

// The values that a flag takes. Help says what they mean; completion offers them.
CLI::Option* only(CLI::Option* option, const std::vector<std::string>& values);
// Flags that several commands have.
void add_log_flag(CLI::App& command, std::string& tier);
void add_device_flag(CLI::App& command, std::string& device);

// Each adds one command with its flags. When the command line names it, parsing runs it and sets `code`.
void add_train(CLI::App& app, ExitCode& code);
void add_serve(CLI::App& app, ExitCode& code);
void add_join(CLI::App& app, ExitCode& code);
void add_invite(CLI::App& app, ExitCode& code);
void add_status(CLI::App& app, ExitCode& code);
void add_data(CLI::App& app, ExitCode& code);
void add_inspect(CLI::App& app, ExitCode& code);
void add_eval(CLI::App& app, ExitCode& code);
void add_export(CLI::App& app, ExitCode& code);
void add_sample(CLI::App& app, ExitCode& code);
void add_compare(CLI::App& app, ExitCode& code);
void add_plot(CLI::App& app, ExitCode& code);
void add_plan(CLI::App& app, ExitCode& code);
void add_completion(CLI::App& app, ExitCode& code);
void add_bench(CLI::App& app, ExitCode& code);  // its subcommands compute and pool, and:
void add_bench_original(CLI::App& bench, ExitCode& code);

}  // namespace w5xde
