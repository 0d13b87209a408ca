#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "run/run_config.h"
#include "w5xde/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace w5xde {

// The headings of --help, in this order.
inline constexpr const char* kMainGroup = "Options";
inline constexpr const char* kTrainingGroup = "Training";
inline constexpr const char* kPoolGroup = "Pool and network";
inline constexpr const char* kRecordingGroup = "Recording";
inline constexpr const char* kHistoryGroup = "For the study of the original's history";

// One setting of a run: a flag (--learning-rate) and a key of run.toml (learning-rate) alike.
struct Setting {
  std::string name;
  std::string help;
  bool fixed;  // the result depends on it: it cannot change when a run is resumed
  std::function<std::string()> get;
  std::function<Status(const std::string&)> set;
  bool text;                              // written to run.toml in quotes
  std::vector<std::string> choices = {};  // the values that it takes, where they are few
  std::string group = kMainGroup;         // of --help
};

// Every setting, bound to `c`.
std::vector<Setting> settings_of(RunConfig& c);

// What the command line gave, by name.
using Given = std::map<std::string, std::string>;

// The run's settings as flags, under their headings. Collects what is given, by name: run.toml and resuming
// need to know what was.
void add_settings(CLI::App& command, Given& given);

Status apply_settings(std::vector<Setting>& settings, const Given& given);
// What to give for this configuration: all that is not so by default.
Given given_for(RunConfig config);

// Unknown keys and values of another type are errors that name the line.
Result<Given> read_run_toml(const std::filesystem::path& path);
// Every setting, defaults too.
Status write_run_toml(const std::filesystem::path& path, RunConfig config);

}  // namespace w5xde
