// w5xde data: what a data set holds, before anything is trained on it.
#include <fmt/format.h>

#include <optional>

#include "base/work_progress.h"
#include "commands/command.h"
#include "commands/data_report.h"
#include "data/dataset.h"

namespace w5xde {

namespace {

struct DataCommand {
  std::string spec;
  std::uint32_t samples = 2;
  std::uint64_t seed = 1;
  std::optional<std::int64_t> ignore_index;
};

Status show(const DataCommand& options) {
  const SteadyClock clock;
  const auto open = [&](Split split) {
    WorkProgress progress(nullptr, clock, "reading " + options.spec);
    return open_dataset(options.spec, split, options.seed, options.ignore_index, progress.teller());
  };
  W5XDE_TRY(const auto train, open(Split::train));
  W5XDE_TRY(const auto test, open(Split::test));
  W5XDE_TRY(const std::string text, data_report("train", *train, options.samples));
  fmt::print("{}", text);
  if (!test) {
    fmt::print(
        "test: none; --evaluation-data names another data set, --split holds out a part of this one\n");
    return {};
  }
  W5XDE_TRY(const std::string more, data_report("test", *test, 0));
  fmt::print("{}", more);
  return {};
}

}  // namespace

void add_data(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("data", "What a data set holds: counts, shapes, classes, samples.");
  const auto options = std::make_shared<DataCommand>();
  command->add_option("SPEC", options->spec, "As --data of `w5xde train` has it")->required();
  command->add_option("--samples", options->samples, "How many samples to show");
  command->add_option("--ignore-index", options->ignore_index, "Targets of this class do not count, as -100");
  command->add_option("--seed", options->seed, "Of data that is generated");
  command->footer(
      "Examples:\n"
      "  w5xde data idx:/usr/share/datasets/fashion-mnist\n"
      "  w5xde data text:book.txt,context=64 --samples 1");
  command->callback([options, &code] { code = exit_code(show(*options)); });
}

}  // namespace w5xde
