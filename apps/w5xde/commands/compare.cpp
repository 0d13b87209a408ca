// w5xde compare: what two runs were asked for, where that differs, and what came of them.
#include <fmt/format.h>

#include <set>

#include "base/errors.h"
#include "base/file.h"
#include "commands/command.h"
#include "commands/figure_text.h"
#include "record/run_folder.h"
#include "record/summary.h"
#include "settings.h"

namespace w5xde {

namespace {

struct Compared {
  std::string name;
  Given settings;
  Summary summary;
};

Result<Compared> read(const std::string& run) {
  Compared compared{.name = run};
  W5XDE_TRY(const RunFolder folder, RunFolder::look(run));
  W5XDE_TRY(compared.settings, read_run_toml(folder.run_toml()));
  const auto summary = MappedFile::open(folder.summary());
  if (!summary.ok()) return invalid("{} has no summary yet: it has not ended", run);
  W5XDE_TRY(compared.summary, summary_from_json(text_of(summary->bytes())));
  return compared;
}

void print_row(const std::string& what, const std::string& one, const std::string& other) {
  fmt::print("{:<22} {:>34} {:>34}\n", what, one, other);
}

std::string value_of(const Given& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "–" : found->second;
}

Status compare(const std::string& first, const std::string& second) {
  W5XDE_TRY(const Compared one, read(first));
  W5XDE_TRY(const Compared other, read(second));
  print_row("", one.name, other.name);
  std::set<std::string> names;
  for (const Compared* run : {&one, &other}) {
    for (const auto& [name, value] : run->settings) names.insert(name);
  }
  for (const std::string& name : names) {
    const std::string left = value_of(one.settings, name), right = value_of(other.settings, name);
    if (left != right) print_row(name, left, right);
  }
  fmt::print("\n");
  const auto row = [&](const char* what, const auto& text_of_run) {
    print_row(what, text_of_run(one.summary), text_of_run(other.summary));
  };
  const auto loss = [](const Summary& run) { return run.evaluation ? run.evaluation->loss : kUnknown; };
  const auto accuracy = [](const Summary& run) {
    return run.evaluation ? run.evaluation->accuracy : kUnknown;
  };
  row("steps", [](const Summary& run) { return std::to_string(run.steps); });
  row("last training loss", [](const Summary& run) { return decimal_text(run.loss.last, 4); });
  row("evaluation loss", [&](const Summary& run) { return decimal_text(loss(run), 4); });
  row("evaluation accuracy", [&](const Summary& run) { return decimal_text(accuracy(run), 4); });
  row("seconds", [](const Summary& run) { return decimal_text(run.seconds, 1); });
  row("batches a second", [](const Summary& run) { return decimal_text(run.batches_per_second, 1); });
  row("nodes", [](const Summary& run) { return std::to_string(run.nodes); });
  row("hash of parameters", [](const Summary& run) { return run.parameters_hash; });
  return {};
}

}  // namespace

void add_compare(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("compare", "Two runs: the settings that differ, and the results.");
  const auto first = std::make_shared<std::string>(), second = std::make_shared<std::string>();
  command->add_option("RUN", *first, "A run folder")->required();
  command->add_option("OTHER", *second, "Another")->required();
  command->footer("Example:\n  w5xde compare runs/a runs/b");
  command->callback([first, second, &code] { code = exit_code(compare(*first, *second)); });
}

}  // namespace w5xde
