#include "commands/usage_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "commands/help.h"
#include "commands/suggestion.h"

namespace w5xde {

namespace {

constexpr AlsoCalled kCommands[] = {{"run", "train"},       {"start", "train"},   {"fit", "train"},
                                    {"server", "serve"},    {"node", "join"},     {"worker", "join"},
                                    {"connect", "join"},    {"evaluate", "eval"}, {"test", "eval"},
                                    {"info", "inspect"},    {"show", "inspect"},  {"diff", "compare"},
                                    {"benchmark", "bench"}, {"help", "--help"}};
constexpr AlsoCalled kFlags[] = {
    {"--batch-size", "--batch"}, {"--dataset", "--data"}, {"--num-nodes", "--nodes"}};

using Words = std::vector<std::string>;

// The part of a command line that is a command, and what follows it.
struct Parsed {
  const CLI::App* command = nullptr;
  std::string name;  // "bench pool"; empty for the program itself
  Words rest;

  Parsed(const CLI::App& app, const Words& words) : command(&app), rest(words) {
    while (!rest.empty()) {
      const auto children = command->get_subcommands({});
      const auto next = std::ranges::find(children, rest.front(), &CLI::App::get_name);
      if (next == children.end()) return;
      command = *next;
      name += (name.empty() ? "" : " ") + rest.front();
      rest.erase(rest.begin());
    }
  }
  std::string example() const {
    const std::string example = example_of(*command);
    return example.empty() ? "" : "\n  " + example;
  }
};

Words commands_of(const CLI::App& app) {
  Words names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

Words flags_of(const CLI::App& command) {
  Words flags;
  for (const CLI::Option* option : command.get_options({})) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

Error wrong_command(const Parsed& parsed) {
  const Words commands = commands_of(*parsed.command);
  if (parsed.rest.empty() || parsed.rest.front().starts_with('-')) {
    if (parsed.name.empty())
      return invalid("say a command: {}; `w5xde --help` explains them", in_words(commands));
    return invalid("{0} needs a command: {1}; `w5xde {0} --help` explains them", parsed.name,
                   in_words(commands));
  }
  const std::string& word = parsed.rest.front();
  const std::string meant = did_you_mean(word, commands, kCommands);
  return invalid("there is no command {}{}", word, meant == "." ? "; there is " + in_words(commands) : meant);
}

// The first word that looks like a flag and is none; empty where all are known.
std::string unknown_flag(const Parsed& parsed) {
  const Words flags = flags_of(*parsed.command);
  for (const std::string& word : parsed.rest) {
    const std::string flag = word.substr(0, word.find('='));
    if (flag == "--") return {};  // what follows are no flags
    if (flag.starts_with("--") && std::ranges::find(flags, flag) == flags.end())
      return fmt::format("there is no {}{} `w5xde {} --help-all` lists them", flag,
                         did_you_mean(flag, flags, kFlags), parsed.name);
  }
  return {};
}

Error something_missing(const Parsed& parsed, const CLI::ParseError& refusal) {
  for (const CLI::Option* option : parsed.command->get_options({})) {
    if (option->get_required() && option->count() == 0)
      return invalid("{} needs {} ({}), as in:{}", parsed.name, option->get_name(true),
                     option->get_description(), parsed.example());
  }
  return invalid("{}", refusal.what());
}

Error too_many_words(const Parsed& parsed, const CLI::ParseError& refusal) {
  const Words left = parsed.command->remaining();
  if (left.empty()) return invalid("{}", refusal.what());
  const Words flags = flags_of(*parsed.command);
  if (const std::string flag = "--" + left.front(); std::ranges::find(flags, flag) != flags.end())
    return invalid("{}: '{}' is one word too many; did you mean {}?", parsed.name, left.front(), flag);
  return invalid("{}: '{}' is one word too many. As in:{}", parsed.name, left.front(), parsed.example());
}

// CLI11 says the flag's name first, or behind this.
constexpr std::string_view kNoConversion = "Could not convert: ";

Error wrong_value(const Parsed& parsed, const CLI::ParseError& refusal) {
  std::string text = refusal.what();
  if (text.starts_with(kNoConversion)) text = text.substr(kNoConversion.size());
  const std::string name = text.substr(0, text.find_first_of(": ="));
  const CLI::Option* option = parsed.command->get_option_no_throw(name);
  if (option == nullptr) return invalid("{}", refusal.what());
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&refusal) != nullptr)
    return invalid("{} needs a value: {}", name, option->get_description());
  const std::string value = option->results().empty() ? "" : option->results().back();
  const char* takes = option->get_items_expected_max() == 0 ? "it is a switch; leave the value out"
                      : option->get_type_name() == "UINT"   ? "use a whole number, 0 or more"
                                                            : "use a number, as 0.5 or 1e-3";
  return invalid("{}: '{}': {}", name, value, takes);
}

template <class Kind>
bool is(const CLI::ParseError& refusal) {
  return dynamic_cast<const Kind*>(&refusal) != nullptr;
}

}  // namespace

Error usage_error(const CLI::App& app, const CLI::ParseError& refusal, const Words& words) {
  const Parsed parsed(app, words);
  if (parsed.command->get_require_subcommand_min() > 0) return wrong_command(parsed);
  if (const std::string unknown = unknown_flag(parsed); !unknown.empty()) return invalid("{}", unknown);
  if (is<CLI::RequiredError>(refusal)) return something_missing(parsed, refusal);
  if (is<CLI::ExtrasError>(refusal)) return too_many_words(parsed, refusal);
  if (is<CLI::ArgumentMismatch>(refusal) || is<CLI::ConversionError>(refusal))
    return wrong_value(parsed, refusal);
  return invalid("{}", refusal.what());
}

}  // namespace w5xde
