// w5xde compare: what runs were asked for, where that differs, and what came of them.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/errors.h"
#include "base/file.h"
#include "commands/command.h"
#include "commands/figure_text.h"
#include "record/run_database.h"
#include "record/run_folder.h"
#include "record/summary.h"
#include "settings.h"

namespace w5xde {

namespace {

struct Compared {
  std::string name;
  Given settings;
  std::string state;  // "finished", "stopped", …
  Summary summary;    // of a run that has not ended, what its database knows
};

// As far as a run has come that has no summary.
Summary figures_so_far(const RunFolder& folder) {
  Summary summary;
  summary.batches_per_second = kUnknown;
  const auto database = RunDatabase::look(folder.database());
  if (!database.ok()) return summary;
  if (const auto steps = database->steps(1); !steps.empty()) {
    summary.steps = steps.back().step;
    summary.loss.last = steps.back().loss;
    summary.seconds = steps.back().seconds;
    summary.batches_per_second = database->batches_per_second();
  }
  if (const auto evaluations = database->evaluations(); !evaluations.empty())
    summary.evaluation = {evaluations.back().loss, evaluations.back().accuracy};
  std::set<std::string> names;
  for (const auto& node : database->nodes()) names.insert(node.name);
  summary.nodes = names.size();
  return summary;
}

Result<Compared> read(const std::string& run) {
  Compared compared{.name = run};
  W5XDE_TRY(const RunFolder folder, RunFolder::look(run));
  W5XDE_TRY(compared.settings, read_run_toml(folder.run_toml()));
  const bool trains = folder.owner().has_it;
  const auto summary = MappedFile::open(folder.summary());
  if (trains || !summary.ok()) {
    compared.state = trains ? "still training" : "not ended";
    compared.summary = figures_so_far(folder);
    if (const auto best = folder.best())
      compared.summary.best = BestStats{.step = best->step, .loss = best->evaluation_loss.value_or(kUnknown)};
    return compared;
  }
  W5XDE_TRY(compared.summary, summary_from_json(text_of(summary->bytes())));
  const std::string& outcome = compared.summary.outcome;
  compared.state = outcome == kFinished || outcome == kStopped ? outcome : "failed";
  return compared;
}

using Row = std::vector<std::string>;

// Each column as wide as its widest cell, the first to the left, the others to the right.
std::string table_text(const std::vector<Row>& rows) {
  std::string text;
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], columns_of(row[i]));
  }
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - columns_of(row[i]), ' ');
      line += i == 0 ? row[i] + padding : "  " + padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

// What an older run.toml lacks was as it is by default.
std::string value_of(const Compared& run, const std::string& name, const Given& defaults) {
  const auto usual = defaults.find(name);
  const auto found = run.settings.find(name);
  if (found == run.settings.end()) return usual == defaults.end() ? "–" : usual->second + " (default)";
  const bool is_default = usual != defaults.end() && found->second == usual->second;
  return is_default ? found->second + " (default)" : found->second;
}

std::vector<Row> settings_that_differ(const std::vector<Compared>& runs) {
  RunConfig config;
  Given defaults;
  for (const Setting& setting : settings_of(config)) defaults[setting.name] = setting.get();
  std::set<std::string> names;
  for (const Compared& run : runs) {
    for (const auto& [name, value] : run.settings) names.insert(name);
  }
  std::vector<Row> rows;
  for (const std::string& name : names) {
    Row row = {name};
    for (const Compared& run : runs) row.push_back(value_of(run, name, defaults));
    if (std::ranges::any_of(row.begin() + 2, row.end(), [&](const auto& value) { return value != row[1]; }))
      rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Row> results(const std::vector<Compared>& runs) {
  std::vector<Row> rows;
  const auto add = [&](const char* what, const auto& text_of_run) {
    Row row = {what};
    for (const Compared& run : runs) row.push_back(text_of_run(run.summary));
    rows.push_back(std::move(row));
  };
  const auto loss = [](const Summary& run) { return run.evaluation ? run.evaluation->loss : kUnknown; };
  const auto accuracy = [](const Summary& run) {
    return run.evaluation ? run.evaluation->accuracy : kUnknown;
  };
  rows.push_back({"state"});
  for (const Compared& run : runs) rows.back().push_back(run.state);
  add("steps", [](const Summary& run) { return std::to_string(run.steps); });
  add("last training loss", [](const Summary& run) { return decimal_text(run.loss.last, 4); });
  add("evaluation loss", [&](const Summary& run) { return decimal_text(loss(run), 4); });
  add("best evaluation", [](const Summary& run) {
    return run.best ? fmt::format("{} at step {}", decimal_text(run.best->loss, 4), run.best->step)
                    : std::string("–");
  });
  add("evaluation accuracy", [&](const Summary& run) { return percent_text(accuracy(run), 2); });
  add("seconds", [](const Summary& run) { return decimal_text(run.seconds, 1); });
  add("batches a second", [](const Summary& run) { return decimal_text(run.batches_per_second, 1); });
  add("nodes", [](const Summary& run) { return std::to_string(run.nodes); });
  add("hash of parameters", [](const Summary& run) {
    return run.parameters_hash.empty() ? std::string("–") : run.parameters_hash;
  });
  return rows;
}

Status compare(const std::vector<std::string>& names) {
  if (names.size() < 2) return invalid("compare takes two runs or more, as `w5xde compare runs/a runs/b`");
  std::vector<Compared> runs;
  for (const std::string& name : names) {
    W5XDE_TRY(Compared run, read(name));
    runs.push_back(std::move(run));
  }
  std::vector<Row> rows = {{""}};
  for (const Compared& run : runs) rows.front().push_back(run.name);
  const auto settings = settings_that_differ(runs);
  rows.insert(rows.end(), settings.begin(), settings.end());
  if (settings.empty()) rows.push_back({"the same settings"});
  rows.emplace_back();
  for (Row& row : results(runs)) rows.push_back(std::move(row));
  fmt::print("{}", table_text(rows));
  return {};
}

}  // namespace

void add_compare(CLI::App& app, ExitCode& code) {
  auto* command =
      app.add_subcommand("compare", "Runs side by side: the settings that differ, and the results.");
  const auto runs = std::make_shared<std::vector<std::string>>();
  command->add_option("RUN", *runs, "Two run folders, or more")
      ->required()
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->footer("Example:\n  w5xde compare runs/a runs/b");
  command->callback([runs, &code] { code = exit_code(compare(*runs)); });
}

}  // namespace w5xde
