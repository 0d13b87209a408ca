#include "commands/command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "base/errors.h"
#include "base/file.h"
#include "commands/help.h"
#include "commands/suggestion.h"
#include "settings.h"
#include "w5xde/version.h"

namespace w5xde {

std::unique_ptr<CLI::App> make_program(ExitCode& code) {
  auto app = std::make_unique<CLI::App>(
      "WIIIIIDE: trains PyTorch models on a pool of ordinary machines.\n"
      "`w5xde COMMAND --help` explains a command.",
      "w5xde");
  app->set_version_flag("--version", "w5xde " + std::string(kVersion));
  app->set_help_flag("-h,--help", "What most people need");
  app->set_help_all_flag("--help-all", "All settings");
  app->require_subcommand(1);
  app->formatter(std::make_shared<HelpFormatter>());
  app->footer(
      "Examples:\n"
      "  w5xde train --model mlp:10,20,10 --data synthetic --nodes 4 --seconds 10\n"
      "  w5xde status RUN");
  app->option_defaults()->always_capture_default();
  // Scripts put their defaults first and append what they are given: the last one wins.
  app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  for (const auto add : {add_train, add_serve, add_join, add_invite, add_status, add_data, add_inspect,
                         add_eval, add_sample, add_export, add_compare, add_plot, add_plan, add_completion}) {
    add(*app, code);
  }
  return app;
}

std::string command_with_flag(const std::string& flag) {
  ExitCode ignored = kSuccess;
  const auto program = make_program(ignored);
  for (const CLI::App* command : program->get_subcommands({})) {
    if (command->get_option_no_throw("--" + flag) != nullptr) return command->get_name();
  }
  return {};
}

CLI::Option* only(CLI::Option* option, const std::vector<std::string>& values) {
  return option->type_name(fmt::format("{}", fmt::join(values, "|")));
}

void add_log_flag(CLI::App& command, std::string& tier) {
  const std::vector<std::string> tiers = {"silent", "normal", "verbose"};
  only(command.add_option("--log", tier, in_words(tiers)), tiers)->group(kRecordingGroup);
}

void add_device_flag(CLI::App& command, std::string& device) {
  const std::vector<std::string> devices = {"auto", "cpu", "cuda", "mps"};
  only(command.add_option("--device", device, in_words(devices)), devices);
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

Status check_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  std::error_code ignored;  // of a folder that may not be looked at: writing says so
  if (folder.empty() || std::filesystem::exists(folder, ignored) || ignored) return {};
  return invalid("there is no folder {} that {} could be written to; make it first", folder.string(),
                 path.filename().string());
}

Status write_text(const std::filesystem::path& path, const std::string& text) {
  if (path.empty()) return {};
  W5XDE_CHECK(check_folder_of(path));
  const Bytes bytes = bytes_of(text);
  return write_file_atomically(path, {&bytes, 1});
}

}  // namespace w5xde
