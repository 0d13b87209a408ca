// w5xde bench original: every preset on every workload over every link, one pool at a time.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <thread>

#include "bench/forecast.h"
#include "bench/link_lab.h"
#include "bench/report.h"
#include "bench/studies.h"
#include "commands/commands.h"
#include "figure_text.h"
#include "local_pool/engine_host.h"
#include "local_pool/interrupt.h"
#include "local_pool/scratch.h"
#include "node/machine.h"
#include "w5xde/version.h"

namespace w5xde {

namespace {

// A pool's start and end, beside what it trains; a first guess, until some have run. Where a step takes
// seconds, so does the last one, and what lossy codecs hold back crosses the link in the end.
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

// fmt::print throws when nobody reads any more; here it is a signal that says so.
template <class... Args>
void say(std::FILE* file, fmt::format_string<Args...> format, Args&&... args) {
  std::fputs(fmt::format(format, std::forward<Args>(args)...).c_str(), file);
}

// "[12/99] adaptive, 2M, 100mbit, round 2 of 3, 14:05 left": one line on a terminal, a line a turn in a pipe.
class TurnProgress {
 public:
  // `seconds` that all is expected to take.
  TurnProgress(std::size_t turns, unsigned rounds, double seconds)
      : turns_(turns), rounds_(rounds), seconds_(seconds) {
    say(stderr, "{} pools, about {} in all\n", turns, clock_text(seconds));
  }
  ~TurnProgress() {
    if (terminal_) say(stderr, "\r\x1b[K");
  }
  TurnProgress(const TurnProgress&) = delete;
  TurnProgress& operator=(const TurnProgress&) = delete;

  // Each is expected to take `seconds`.
  void begin_turn(const Cell& cell, unsigned round, double seconds) {
    begin(fmt::format("[{}/{}] {}, round {} of {}", ++done_, turns_, name_of(cell), round + 1, rounds_),
          seconds);
  }
  void begin_plan(const Cell& cell, double seconds) {
    begin(fmt::format("w5xde plan, {}", name_of(cell)), seconds);
  }
  void show() const {
    if (!terminal_) return;
    say(stderr, "\r\x1b[K{}, {} left", what_, clock_text(ends_ - seconds_of(clock_.now() - begun_)));
    std::fflush(stderr);
  }

 private:
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

  SteadyClock clock_;
  const Instant begun_ = clock_.now();
  const std::size_t turns_;
  const unsigned rounds_;
  const double seconds_;
  double expected_ = 0;  // of seconds_, until what runs now ends
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  std::size_t done_ = 0;
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
    if (error)
      return invalid(fmt::format("--out {}: {}; name another folder", options_.out, error.message()));
    report_ = {.conditions = conditions_of(options_), .rows = {}, .forecasts = {}};
    for (const Cell& cell : cells) {
      report_.rows.push_back({.cell = cell, .warm_up_seconds = warm_up_seconds(cell)});
    }
    W5XDE_CHECK(measure(cells));
    return tell();
  }

 private:
  Status measure(const std::vector<Cell>& cells) {
    const bool slow = std::ranges::any_of(cells, [](const Cell& cell) { return cell.link != "loopback"; });
    if (slow) {
      W5XDE_TRY(lab_, LinkLab::open(kSlowLinkBytesPerSecond));
      report_.conditions.link = lab_->how();
    }
    std::vector<std::vector<Figures>> rounds(cells.size(), std::vector<Figures>(options_.rounds));
    const auto turns = interleaved(cells, options_.rounds);
    TurnProgress progress(turns.size(), options_.rounds, expected_seconds(cells, turns));
    for (const Turn& turn : turns) {
      const Cell& cell = cells[turn.cell];
      if (predicted(cell)) forecast(cell, progress);
      if (stopped()) break;
      progress.begin_turn(cell, turn.round, turn_seconds(cell));
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

  // Just before the pool that is predicted: the machine's speed moves within minutes.
  void forecast(const Cell& cell, TurnProgress& progress) {
    progress.begin_plan(cell, kPlanSeconds);
    const Forecast made = forecast_of(cell,
                                      {.nodes = options_.nodes,
                                       .cores = Machine::here().cores,
                                       .folder = scratch_.path,
                                       .engine = options_.engine},
                                      watch(progress));
    if (!stopped()) report_.add(made);
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
    const PoolRun pool{.nodes = options_.nodes,
                       .flags = flags_of(cell, options_.nodes, round_seconds()),
                       .folder = scratch_.path,
                       .engine = options_.engine,
                       .warm_up_seconds = warm_up_seconds(cell)};
    return cell.link == "loopback" ? run_pool(pool, watch(progress)) : lab_->run_pool(pool, watch(progress));
  }

  Watch watch(const TurnProgress& progress) const {
    return {.interrupt = interrupt_.descriptor(), .every_second = [&progress] { progress.show(); }};
  }

  Result<ExitCode> tell() const {
    const std::filesystem::path out = options_.out;
    say(stdout, "{}", to_text(report_));
    W5XDE_CHECK(write_text(out / "report.json", to_json(report_)));
    W5XDE_CHECK(write_text(out / "report.html", report_html(report_)));
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
  const Scratch scratch_{"original"};
  std::unique_ptr<LinkLab> lab_;
  BenchReport report_;
};

}  // namespace

ExitCode bench_original(const OriginalBenchOptions& options) {
  auto code = OriginalBench(options).run();
  return code.ok() ? *code : report(code.error());
}

}  // namespace w5xde
