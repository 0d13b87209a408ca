// w5xde completion: a script that teaches a shell the commands and their flags.
#include "commands/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <vector>

#include "commands/command.h"

namespace w5xde {

namespace {

using Words = std::vector<std::string>;

// What goes where the script has a line with the name. $command is what was typed up to the word at hand, as
// " bench pool".
constexpr std::string_view kScript =
    R"(# Completes w5xde in bash. Use it with: source <(w5xde completion bash)
_w5xde() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= words= i
  COMPREPLY=()
  # --flag=value arrives as three words.
  if [[ $current == = ]]; then
    current=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${COMP_WORDS[i]}" in
      @COMMANDS@) command+=" ${COMP_WORDS[i]}" ;;
    esac
  done
  case "$command $before" in
@VALUES@
    @SWITCHES@) ;;
    *' -'*) return ;;  # a value that is not known: a file, or up to the user
  esac
  if [[ -z $words ]]; then
    case "$command" in
@WORDS@
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _w5xde w5xde
)";

struct Tables {
  Words commands;                       // patterns
  Words switches;                       // patterns: flags without a value
  std::map<std::string, Words> values;  // "sync async" → patterns of the flags that take one of them
  std::string words;                    // lines: what may come next
};

std::string pattern(const std::string& path, const std::string& word) {
  return fmt::format("'{} {}'", path, word);
}

Words names_of(const CLI::Option& option) {
  Words names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

// `path` is " bench pool", or empty for the program itself.
void add(Tables& tables, const CLI::App& command, const std::string& path) {
  Words flags, commands;
  for (const CLI::Option* option : command.get_options({})) {
    std::string values = option->get_type_name();
    const bool known = values.find('|') != std::string::npos;
    std::ranges::replace(values, '|', ' ');
    for (const std::string& name : names_of(*option)) {
      flags.push_back(name);
      if (option->get_items_expected_max() == 0) tables.switches.push_back(pattern(path, name));
      if (known) tables.values[values].push_back(pattern(path, name));
    }
  }
  for (const CLI::App* child : command.get_subcommands({})) {
    const std::string below = fmt::format("{} {}", path, child->get_name());
    commands.push_back(child->get_name());
    tables.commands.push_back(pattern(path, child->get_name()));
    add(tables, *child, below);
  }
  // Flags where one is begun; else what the command takes as words.
  tables.words +=
      fmt::format("      '{}') if [[ $current == -* ]]; then words='{}'; else words='{}'; fi ;;\n", path,
                  fmt::join(flags, " "), fmt::join(commands, " "));
}

void fill_in(std::string& script, const std::string& name, const std::string& text) {
  script.replace(script.find(name), name.size(), text);
}

}  // namespace

std::string bash_completion(const CLI::App& program) {
  Tables tables;
  add(tables, program, "");
  std::string values;
  for (const auto& [words, patterns] : tables.values)
    values += fmt::format("    {}) words='{}' ;;\n", fmt::join(patterns, "|"), words);
  std::string script(kScript);
  fill_in(script, "@COMMANDS@", fmt::format("{}", fmt::join(tables.commands, "|")));
  fill_in(script, "@VALUES@\n", values);
  fill_in(script, "@SWITCHES@", fmt::format("{}", fmt::join(tables.switches, "|")));
  fill_in(script, "@WORDS@\n", tables.words);
  return script;
}

void add_completion(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("completion", "A script that completes commands and flags in a shell.");
  command->require_subcommand(1);
  command->footer("Example:\n  w5xde completion bash");
  auto* bash = command->add_subcommand("bash", "For bash: of the words and values that there are.");
  bash->footer(
      "Examples:\n  w5xde completion bash > ~/.w5xde_completion\nFor this shell only:\n  source <(w5xde "
      "completion bash)");
  bash->callback([&app, &code] {
    fmt::print("{}", bash_completion(app));
    code = kSuccess;
  });
}

}  // namespace w5xde
