// w5xde plot: the losses of runs as a picture, or as a table for another program.
#include <fmt/format.h>

#include <vector>

#include "base/errors.h"
#include "commands/command.h"
#include "commands/run_history.h"

namespace w5xde {

namespace {

Status plot(const std::vector<std::string>& names, const std::string& output, std::string csv) {
  std::string svg;
  if (output.ends_with(".svg")) {
    svg = output;
  } else if (output.ends_with(".csv") && csv.empty()) {
    csv = output;
  } else if (!output.empty()) {
    return invalid("-o {}: give a file that ends with .svg, for a picture, or with .csv, for a table",
                   output);
  }
  if (svg.empty() && csv.empty())
    return invalid("say where to draw it: -o loss.svg; or --csv loss.csv for the figures alone");
  W5XDE_CHECK(check_folder_of(svg));
  W5XDE_CHECK(check_folder_of(csv));
  std::vector<RunHistory> runs;
  for (const std::string& name : names) {
    W5XDE_TRY(RunHistory run, read_history(name));
    runs.push_back(std::move(run));
  }
  if (!svg.empty()) W5XDE_CHECK(write_text(svg, to_svg(runs)));
  return csv.empty() ? Status() : write_text(csv, to_csv(runs));
}

}  // namespace

void add_plot(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("plot", "The losses of runs over steps, as a picture or a table.");
  const auto runs = std::make_shared<std::vector<std::string>>();
  const auto output = std::make_shared<std::string>(), csv = std::make_shared<std::string>();
  command->add_option("RUN", *runs, "Run folders")
      ->required()
      ->default_str("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("-o,--output", *output, "The picture: FILE.svg, for any browser; or FILE.csv");
  command->add_option("--csv", *csv, "Write the figures to this file too");
  command->footer(
      "Examples:\n  w5xde plot runs/a -o loss.svg\n  w5xde plot runs/a runs/b -o loss.svg --csv loss.csv");
  command->callback([=, &code] { code = exit_code(plot(*runs, *output, *csv)); });
}

}  // namespace w5xde
