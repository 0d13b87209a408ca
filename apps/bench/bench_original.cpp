// w5xde bench original: every preset on every workload over every link, one pool at a time.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/errors.h"
#include "base/file.h"
#include "bench/link_lab.h"
#include "bench/report.h"
#include "bench/studies.h"
#include "commands/command.h"
#include "commands/figure_text.h"
#include "commands/plan_report.h"
#include "local_pool/engine_host.h"
#include "local_pool/interrupt.h"
#include "local_pool/run_model.h"
#include "local_pool/scratch.h"
#include "node/machine.h"
#include "w5xde/version.h"

namespace w5xde {

namespace {

struct OriginalBenchOptions {
  double seconds = 30;  // a cell's, all rounds together, after the warm-up
  unsigned nodes = 10;
  unsigned rounds = 3;
  std::string only;
  std::string out = "bench-report";
  std::string engine;
};

// A first guess of how long a pool's start and end take. Where a step takes seconds, so does the last one,
// and what lossy codecs dropped crosses the link at the end.
double overhead_seconds(const Cell& cell) {
  return cell.workload == "2M" && cell.link != "loopback" ? 8 : 2.5;
}
constexpr double kPlanSeconds = 5;
constexpr double kSlowLinkBytesPerSecond = 12.5e6;  // 100 Mbit/s

std::uint64_t number_in(const char* path) {
  std::uint64_t number = 0;
  std::ifstream(path) >> number;
  return number;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts);
  return text;
}

Conditions conditions_of(const OriginalBenchOptions& options) {
  utsname kernel{};
  uname(&kernel);
  return {.date = today(),
          .version = std::string(kVersion),
          .processor = processor_name(),
          .kernel = fmt::format("{} {}", kernel.sysname, kernel.release),
          .cores = std::thread::hardware_concurrency(),
          .receive_buffer_bytes_max = number_in("/proc/sys/net/core/rmem_max"),
          .send_buffer_bytes_max = number_in("/proc/sys/net/core/wmem_max"),
          .nodes = options.nodes,
          .rounds = options.rounds,
          .seconds = options.seconds,
          .link = {},
          .complete = true};
}

// fmt::print throws when the reader of a pipe is gone; here SIGPIPE, which Interrupt catches, says so.
template <class... Args>
void say(std::FILE* file, fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), file);
}

// "[12/99] adaptive, 2M, 100mbit, round 2 of 3, 14:05 left": one line on a terminal, a line a turn in a pipe.
class TurnProgress {
 public:
  // `seconds` is how long all turns are expected to take.
  explicit TurnProgress(double seconds) : seconds_(seconds) {}
  ~TurnProgress() {
    if (terminal_) say(stderr, "\r\x1b[K");
  }
  TurnProgress(const TurnProgress&) = delete;
  TurnProgress& operator=(const TurnProgress&) = delete;

  // `seconds` is how long it is expected to take.
  void begin(std::string what, double seconds) {
    const double passed = seconds_of(clock_.now() - begun_);
    // What is ahead takes as much longer than expected as what is behind did.
    const double pace = expected_ > 0 ? passed / expected_ : 1;
    ends_ = passed + (seconds_ - expected_) * pace;
    expected_ += seconds;
    what_ = std::move(what);
    if (terminal_) return show();
    say(stderr, "{}, {} left\n", what_, clock_text(ends_ - passed));
  }
  void show() const {
    if (!terminal_) return;
    say(stderr, "\r\x1b[K{}, {} left", what_, clock_text(ends_ - seconds_of(clock_.now() - begun_)));
    std::fflush(stderr);
  }

 private:
  SteadyClock clock_;
  const Instant begun_ = clock_.now();
  const double seconds_;
  double expected_ = 0;  // of seconds_, until what runs now ends
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  double ends_ = 0;
  std::string what_;
};

class OriginalBench {
 public:
  explicit OriginalBench(const OriginalBenchOptions& options) : options_(options) {}

  Result<ExitCode> run() {
    if (options_.nodes == 0 || options_.rounds == 0 || !(options_.seconds > 0)) {
      return invalid("--nodes, --rounds and --seconds must be more than 0");
    }
    W5XDE_TRY([[maybe_unused]] const auto engine, find_engine(options_.engine));
    W5XDE_TRY(const auto cells, chosen(all_cells(), options_.only));
    std::error_code error;
    std::filesystem::create_directories(options_.out, error);
    if (error) return invalid("--out {}: {}; name another folder", options_.out, error.message());
    report_ = {.conditions = conditions_of(options_), .rows = {}, .forecasts = {}};
    for (const Cell& cell : cells) {
      report_.rows.push_back({.cell = cell, .warm_up_seconds = warm_up_seconds(cell)});
    }
    W5XDE_CHECK(measure(cells));
    return write_report();
  }

 private:
  Status measure(const std::vector<Cell>& cells) {
    const bool slow = std::ranges::any_of(cells, [](const Cell& cell) { return cell.link != "loopback"; });
    if (slow) {
      W5XDE_TRY(lab_, LinkLab::open(kSlowLinkBytesPerSecond));
      report_.conditions.link = lab_->how;
    }
    std::vector<std::vector<Figures>> rounds(cells.size(), std::vector<Figures>(options_.rounds));
    const auto turns = interleaved(cells, options_.rounds);
    const double seconds = expected_seconds(cells, turns);
    say(stderr, "{} pools, about {} in all\n", turns.size(), clock_text(seconds));
    TurnProgress progress(seconds);
    for (std::size_t i = 0; i < turns.size(); ++i) {
      const Turn& turn = turns[i];
      const Cell& cell = cells[turn.cell];
      if (predicted(cell)) forecast(cell, progress);
      if (stopped()) break;
      progress.begin(fmt::format("[{}/{}] {}, round {} of {}", i + 1, turns.size(), name_of(cell),
                                 turn.round + 1, options_.rounds),
                     turn_seconds(cell));
      const auto outcome = run_cell(cell, progress);
      if (stopped()) break;
      Row& row = report_.rows[turn.cell];
      if (outcome.ok()) {
        rounds[turn.cell][turn.round] = figures_of(outcome->summary, outcome->warm);
        if (!outcome->warm) ++row.cold_rounds;
      } else {
        row.problem = outcome.error().message;
      }
    }
    for (std::size_t i = 0; i < cells.size(); ++i) {
      report_.rows[i].figures = median_of(rounds[i]);
      for (const Figures& round : rounds[i]) report_.rows[i].rounds_batches.push_back(round.batches);
    }
    return {};
  }

  bool stopped() {
    if (interrupt_.pending()) report_.conditions.complete = false;
    return !report_.conditions.complete;
  }

  // Just before the pool that is predicted: the machine's speed changes within minutes.
  void forecast(const Cell& cell, TurnProgress& progress) {
    progress.begin(fmt::format("w5xde plan, {}", name_of(cell)), kPlanSeconds);
    const auto plan = ask_plan(cell, watch(progress));
    if (stopped()) return;
    auto found = std::ranges::find(report_.forecasts, cell, &Forecast::cell);
    if (found == report_.forecasts.end()) found = report_.forecasts.insert(found, Forecast{.cell = cell});
    found->batches.push_back(plan.ok() ? plan->batches_per_second * kPublishedSeconds : kUnknown);
    found->slot_seconds.push_back(plan.ok() ? plan->slot_seconds : kUnknown);
    if (plan.ok()) {
      found->bottleneck = plan->bottleneck;
    } else {
      found->problem = plan.error().message;
    }
  }

  // `w5xde plan`, run as a person would.
  Result<PlanFigures> ask_plan(const Cell& cell, const Watch& watch) const {
    W5XDE_TRY(const std::string program, own_program());
    const Scratch scratch("plan");
    const auto json = scratch.path / "plan.json";
    Words words = {program,   "plan",
                   "--json",  json.string(),
                   "--link",  cell.link,
                   "--nodes", std::to_string(options_.nodes),
                   "--cores", std::to_string(Machine::here().cores)};
    if (!options_.engine.empty()) words.insert(words.end(), {"--engine", options_.engine});
    W5XDE_TRY(Child child,
              Child::start(words + run_flags(cell, options_.nodes), scratch.path / "output.txt"));
    W5XDE_CHECK(wait_for({&child, 1}, watch));
    W5XDE_TRY(const MappedFile file, MappedFile::open(json));
    return plan_figures_from_json(text_of(file.bytes()));
  }

  double expected_seconds(const std::vector<Cell>& cells, const std::vector<Turn>& turns) const {
    double seconds = 0;
    for (const Turn& turn : turns) {
      const Cell& cell = cells[turn.cell];
      seconds += turn_seconds(cell);
      if (predicted(cell)) seconds += kPlanSeconds;
    }
    return seconds;
  }

  double round_seconds() const { return options_.seconds / options_.rounds; }
  double turn_seconds(const Cell& cell) const {
    return warm_up_seconds(cell) + round_seconds() + overhead_seconds(cell);
  }

  Result<PoolOutcome> run_cell(const Cell& cell, const TurnProgress& progress) {
    return run_pool({.nodes = options_.nodes,
                     .flags = flags_of(cell, options_.nodes, round_seconds()),
                     .engine = options_.engine,
                     .warm_up_seconds = warm_up_seconds(cell),
                     .link = cell.link == "loopback" ? nullptr : &lab_->ends},
                    watch(progress));
  }

  Watch watch(const TurnProgress& progress) const {
    return {.interrupt = interrupt_.descriptor(), .every_second = [&progress] { progress.show(); }};
  }

  Result<ExitCode> write_report() const {
    const std::filesystem::path out = options_.out;
    say(stdout, "{}", to_text(report_));
    W5XDE_CHECK(write_text(out / "report.json", to_json(report_)));
    W5XDE_CHECK(write_text(out / "report.html", to_html(report_)));
    say(stdout, "{}, {}\n", (out / "report.html").string(), (out / "report.json").string());
    if (!report_.conditions.complete) {
      say(stderr, "w5xde: stopped; the report has what was measured until then\n");
      return kInterrupted;
    }
    const auto failed = [](const auto& part) { return !part.problem.empty(); };
    const bool all_well =
        std::ranges::none_of(report_.rows, failed) && std::ranges::none_of(report_.forecasts, failed);
    return all_well ? kSuccess : kFailed;
  }

  const OriginalBenchOptions& options_;
  // Also when the terminal or the reader of a pipe is gone: the link must not be left behind.
  const Interrupt interrupt_{SIGINT, SIGTERM, SIGHUP, SIGPIPE};
  std::optional<LinkLab> lab_;
  BenchReport report_;
};

}  // namespace

void add_bench_original(CLI::App& bench, ExitCode& code) {
  auto* command =
      bench.add_subcommand("original", "Every preset on every workload over every link, and two studies.");
  const auto options = std::make_shared<OriginalBenchOptions>();
  command->add_option("--seconds", options->seconds,
                      "How long each row is measured after its warm-up, all rounds together");
  command->add_option("--nodes", options->nodes, "Nodes of the pool");
  command->add_option("--rounds", options->rounds, "How often each row is measured; the median counts");
  command->add_option(
      "--only", options->only,
      "Words with commas between: parts (presets, buffers, logging), presets, workloads (original, "
      "2M), links (loopback, 100mbit)");
  command->add_option("--out", options->out, "The folder for report.html and report.json");
  command->add_option("--engine", options->engine, "The engine's shared library");
  command->footer(
      "Examples:\n"
      "  w5xde bench original                   all of it, forty minutes\n"
      "  w5xde bench original --only presets,original,loopback --seconds 6\n"
      "                                         the original's own table, three minutes");
  command->callback([options, &code] { code = exit_code(OriginalBench(*options).run()); });
}

}  // namespace w5xde
