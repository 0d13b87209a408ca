#include "commands/run_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <system_error>

#include "base/file.h"
#include "commands/figure_text.h"
#include "node/machine.h"
#include "record/run_database.h"
#include "record/run_folder.h"
#include "record/summary.h"

namespace w5xde {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFailed = "failed";
constexpr const char* kKilled = "killed";
constexpr const char* kNotBegun = "not begun";

// How long ago the newest of these files was written; none where none has anything in it.
std::optional<double> age_of(const std::vector<fs::path>& files) {
  std::optional<double> youngest;
  for (const fs::path& file : files) {
    std::error_code missing;
    const auto written = fs::last_write_time(file, missing);
    // Who reads a database makes an empty log of changes beside it.
    if (missing || fs::file_size(file, missing) == 0) continue;
    const std::chrono::duration<double> age = fs::file_time_type::clock::now() - written;
    youngest = std::min(youngest.value_or(age.count()), age.count());
  }
  return youngest ? std::optional(std::max(*youngest, 0.0)) : std::nullopt;
}

std::optional<double> age_of_figures(const RunFolder& folder) {
  return age_of({folder.database(), folder.database().string() + "-wal"});
}

// "5 min ago (2026-11-18 20:10)"
std::string ago_text(double seconds) {
  const std::time_t then = std::time(nullptr) - std::llround(seconds);
  std::tm parts{};
  localtime_r(&then, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return fmt::format("{} ago ({})", span_text(seconds), text);
}

// Where this machine can ask the folder's coordinator; none where only its own machine can.
std::optional<Address> reachable(const RunFolder::Owner& owner) {
  auto address = parse_address(owner.address);
  const std::size_t on = owner.process.rfind(" on ");
  if (!address.ok() || on == std::string::npos) return std::nullopt;
  const std::string machine = owner.process.substr(on + 4);
  const bool here = machine == host_name();
  if (address->host == "0.0.0.0" || address->host == "::")
    address->host = !here ? machine : address->host == "::" ? "::1" : "127.0.0.1";
  if (!here && (address->host.starts_with("127.") || address->host == "::1" || address->host == "localhost"))
    return std::nullopt;
  return std::move(*address);
}

// Also of "runs/a/" and ".".
std::string name_of_folder(const fs::path& path) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(path, ignored).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

void read_figures(const RunDatabase& database, StatusReport& report) {
  if (const auto steps = database.steps(1); !steps.empty()) {
    report.step = steps.back().step;
    report.loss = steps.back().loss;
    report.seconds = steps.back().seconds;
    report.batches_per_second = database.batches_per_second();
  }
}

// A node that came back is listed once, as it was the last time. Where nobody has the folder, nobody is in.
void read_nodes(const RunDatabase& database, bool has_owner, StatusReport& report) {
  std::vector<RunDatabase::NodeRow> last;
  for (RunDatabase::NodeRow& row : database.nodes()) {
    const auto known = std::ranges::find(last, row.name, &RunDatabase::NodeRow::name);
    if (known == last.end()) {
      last.push_back(std::move(row));
      continue;
    }
    row.batches += known->batches;
    *known = std::move(row);
  }
  for (const auto& row : last) {
    if (has_owner && std::isnan(row.left_seconds)) {
      report.nodes.push_back(
          {.name = row.name, .peer = row.peer, .engine = row.engine, .batches = row.batches});
    } else {
      const bool cut_off = std::isnan(row.left_seconds);
      report.departures.push_back({.name = row.name,
                                   .seconds = cut_off ? report.seconds : row.left_seconds,
                                   .reason = cut_off ? RunDatabase::kCutOff : row.reason,
                                   .batches = row.batches});
    }
  }
}

std::optional<Summary> read_summary(const RunFolder& folder) {
  const auto file = MappedFile::open(folder.summary());
  if (!file.ok()) return std::nullopt;
  auto summary = summary_from_json(text_of(file->bytes()));
  return summary.ok() ? std::optional(std::move(*summary)) : std::nullopt;
}

void add_result(const Summary& summary, RunStatus& status) {
  status.report.mode = summary.mode;
  status.report.step = summary.steps;
  if (!std::isnan(summary.loss.last)) status.report.loss = summary.loss.last;
  status.report.seconds = summary.seconds;
  status.report.epochs = summary.epochs;
  status.report.batches = summary.batches;
  if (summary.evaluation) {
    const double accuracy = summary.evaluation->accuracy;
    status.notes.push_back(
        fmt::format("evaluation: loss {}{}", decimal_text(summary.evaluation->loss, 4),
                    std::isnan(accuracy) ? "" : fmt::format(", accuracy {}", percent_text(accuracy, 2))));
  }
  status.notes.push_back(fmt::format("hash of parameters: {}", summary.parameters_hash));
}

void add_checkpoints(const RunFolder& folder, RunStatus& status) {
  if (const auto files = folder.checkpoints(); !files.empty()) {
    const auto info = read_checkpoint_info(files.front());
    status.notes.push_back(fmt::format("newest checkpoint: {}{}", files.front().string(),
                                       info.ok() ? fmt::format(", of step {}", info->step) : ""));
  }
  if (const auto best = folder.best()) {
    status.notes.push_back(fmt::format("best checkpoint: {}, of step {}, with the lowest evaluation loss: {}",
                                       folder.best_checkpoint().string(), best->step,
                                       decimal_text(best->evaluation_loss.value_or(kUnknown), 4)));
  }
}

// With this folder's path in the place of the word that stands for it.
std::string command_to_go_on(const RunFolder& folder, const RunFolder::Owner& owner) {
  const std::string word = RunFolder::kRunWord;
  std::string command = owner.command.empty() ? "w5xde train " + word : owner.command;
  if (const std::size_t at = command.find(word); at != std::string::npos)
    command.replace(at, word.size(), folder.path().string());
  return command;
}

// Of a run that no coordinator has.
void add_end(const RunFolder& folder, const RunFolder::Owner& owner, RunStatus& status) {
  StatusReport& report = status.report;
  if (const auto summary = read_summary(folder)) {
    const std::string when = ago_text(age_of({folder.summary()}).value_or(0));
    const bool ended = summary->outcome == kFinished || summary->outcome == kStopped;
    report.phase = ended ? summary->outcome : kFailed;
    status.notes.push_back(ended ? fmt::format("{} {}", summary->outcome, when)
                                 : fmt::format("failed {}: {}", when, summary->outcome));
    add_result(*summary, status);
  } else if (folder.checkpoints().empty()) {
    report.phase = kNotBegun;
  } else {
    report.phase = kKilled;
    status.notes.push_back(
        fmt::format("no coordinator has this run, and it did not come to an end: it was killed{}",
                    report.age_seconds > 0 ? ", about " + ago_text(report.age_seconds) : ""));
  }
  add_checkpoints(folder, status);
  if (report.phase != kFinished)
    status.notes.push_back(fmt::format("go on with: {}", command_to_go_on(folder, owner)));
}

std::string nodes_text(const StatusReport& report) {
  if (report.nodes.empty()) return "";
  if (report.age_seconds > 0) {
    std::string names;
    for (const auto& node : report.nodes) names += (names.empty() ? "" : ", ") + node.name;
    return fmt::format("nodes that were in: {}\n", names);
  }
  std::string text =
      fmt::format("\n{:<20} {:<22} {:>10} {:>11} {:>9}\n", "node", "from", "batches", "batches/s", "ping ms");
  for (const auto& node : report.nodes) {
    text += fmt::format("{:<20} {:<22} {:>10} {:>11.0f} {:>9.1f}  {}\n", node.name, node.peer, node.batches,
                        node.batches_per_second, node.round_trip_ms, node.engine);
    if (!node.reason.empty()) text += fmt::format("{:<20} {}: {}\n", "", node.standing, node.reason);
    if (node.lanes > 1) text += fmt::format("{:<20} {} slots at once\n", "", node.lanes);
    if (!node.codec_up.empty()) {
      text += fmt::format("{:<20} gradients: {}\n{:<20} parameters: {}\n", "", node.codec_up, "",
                          node.codec_down);
    }
  }
  return text;
}

std::string departures_text(const StatusReport& report) {
  if (report.departures.empty()) return "";
  const bool ended = report.phase == kFinished || report.phase == kStopped || report.phase == kFailed ||
                     report.phase == kKilled;
  std::string text = ended ? "\nnodes that took part, and when they left:\n" : "\nleft:\n";
  for (const auto& departure : report.departures) {
    const bool back =
        std::ranges::find(report.nodes, departure.name, &StatusReport::Node::name) != report.nodes.end();
    const std::string batches =
        departure.reason == RunDatabase::kCutOff ? "–" : std::to_string(departure.batches);
    text += fmt::format("  {:>8.1f} s  {:<20} {:>10} batches  {}{}\n", departure.seconds, departure.name,
                        batches, departure.reason, back ? "; it came back" : "");
  }
  return text;
}

}  // namespace

Result<RunStatus> status_of_folder(const fs::path& path, const AskCoordinator& ask) {
  W5XDE_TRY(const RunFolder folder, RunFolder::look(path));
  RunFolder::Owner owner = folder.owner();
  std::string why_not = "it cannot be asked from this machine";
  if (owner.has_it) {
    if (const auto address = reachable(owner)) {
      auto answer = ask(*address);
      if (answer.ok()) return RunStatus{std::move(*answer), {}};
      why_not = answer.error().message;
      owner = folder.owner();  // it may have ended meanwhile
    }
  }
  RunStatus status{.report = {.run = name_of_folder(path)}};
  StatusReport& report = status.report;
  report.age_seconds = age_of_figures(folder).value_or(0);
  if (const auto database = RunDatabase::look(folder.database()); database.ok()) {
    read_figures(*database, report);
    read_nodes(*database, owner.has_it, report);
  }
  if (!owner.has_it) {
    add_end(folder, owner, status);
    return status;
  }
  report.phase = "training";
  status.notes.push_back(
      fmt::format("these figures are as of {} ago: {} has the run, and did not answer ({})",
                  span_text(report.age_seconds), owner.process, why_not));
  return status;
}

std::string to_text(const RunStatus& status) {
  const StatusReport& report = status.report;
  std::string text = fmt::format("{}  {}  step {}", report.run, report.phase, report.step);
  if (report.steps_total > 0) text += fmt::format(" of {}", report.steps_total);
  if (report.loss) text += fmt::format("  loss {}", decimal_text(*report.loss, 4));
  if (report.batches_per_second > 0) text += fmt::format("  {:.0f} batches/s", report.batches_per_second);
  text += fmt::format("  {:.0f} s of training\n", report.seconds);
  for (const std::string& note : status.notes) text += note + "\n";
  if (report.global_batch > 0) {
    text += fmt::format("global batch {} samples, {} a slot", report.global_batch, report.batch);
    if (report.noise_scale > 0) text += fmt::format(", noise scale {:.0f}", report.noise_scale);
    text += "\n";
  }
  if (report.working > 0 && report.working < report.nodes.size()) {
    text += fmt::format("{} of {} nodes work at a time: more at once would make a step longer\n",
                        report.working, report.nodes.size());
  }
  return text + nodes_text(report) + departures_text(report);
}

}  // namespace w5xde
