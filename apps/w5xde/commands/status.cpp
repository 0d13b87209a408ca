// w5xde status: how a run is doing, asked of its coordinator or read from its folder.
#include "wire/status.h"

#include <fmt/format.h>

#include <cmath>

#include "base/errors.h"
#include "commands/command.h"
#include "commands/figure_text.h"
#include "net/connection.h"
#include "net/tcp.h"
#include "record/run_database.h"
#include "record/run_folder.h"
#include "record/summary.h"
#include "settings.h"
#include "w5xde/version.h"
#include "wire/hello.h"

namespace w5xde {

namespace {

// Asks once and takes the answer.
class Observer final : public Connection::Owner {
 public:
  explicit Observer(std::unique_ptr<Stream> stream) {
    connection_ = Connection::start(std::move(stream), *this, limits());
    Head hello, question;
    encode(Hello{.software = "w5xde " + std::string(kVersion), .name = "observer", .role = "observer"},
           hello);
    encode(StatusReport{}, question);
    (void)connection_->send({.type = FrameType::hello, .head = hello});
    (void)connection_->send({.type = FrameType::status, .head = question});
  }
  ~Observer() override { connection_->detach(); }

  static Limits limits() {
    Limits limits = Limits::stranger();
    limits.head_bytes_max = Limits{}.head_bytes_max;  // a pool of a thousand has much to say
    return limits;
  }

  Result<MutableBytes> place(const FrameHeader&, Bytes) override { return MutableBytes(); }
  Status received(const FrameHeader& header, Bytes head, MutableBytes) override {
    if (header.type == FrameType::status) answer = decode_status(head, limits());
    return {};
  }
  void closed(const Error& reason) override {
    if (!answer) answer = Error(reason);
  }

  std::optional<Result<StatusReport>> answer;

 private:
  std::shared_ptr<Connection> connection_;
};

Result<StatusReport> ask(const Address& address) {
  AsioLoop loop;
  Random random(1);
  std::optional<Result<std::unique_ptr<Stream>>> stream;
  connect_tcp(loop, {.address = address, .attempts_max = 1}, random,
              [&](auto result) { stream = std::move(result); });
  loop.run_until([&] { return stream.has_value(); });
  if (!stream->ok()) {
    return std::move(*stream).error().within(
        fmt::format("no coordinator answers at {}", address.to_string()));
  }
  Observer observer(std::move(**stream));
  loop.run_until([&] { return observer.answer.has_value(); });
  return std::move(*observer.answer);
}

// A folder has what was recorded; only the coordinator knows who is in now.
Result<StatusReport> read(const std::filesystem::path& path) {
  W5XDE_TRY(const RunFolder folder, RunFolder::look(path));
  W5XDE_TRY(const RunDatabase database, RunDatabase::look(folder.database()));
  StatusReport report{.run = folder.path().filename().string(), .phase = "as recorded in its folder"};
  if (const auto steps = database.steps(2); !steps.empty()) {
    report.step = steps.back().step;
    report.loss = steps.back().loss;
    report.batches_per_second = database.batches_per_second();
    report.seconds = steps.back().seconds;
  }
  for (const auto& node : database.nodes()) {
    if (std::isnan(node.left_seconds)) {
      report.nodes.push_back(
          {.name = node.name, .peer = node.peer, .engine = node.engine, .batches = node.batches});
    } else {
      report.departures.push_back(
          {.name = node.name, .seconds = node.left_seconds, .reason = node.reason, .batches = node.batches});
    }
  }
  return report;
}

void print(const StatusReport& report) {
  fmt::print("{}  {}  step {}", report.run, report.phase, report.step);
  if (report.steps_total > 0) fmt::print(" of {}", report.steps_total);
  fmt::print("  loss {}  {:.0f} batches/s  {:.0f} s\n", decimal_text(report.loss.value_or(kUnknown), 4),
             report.batches_per_second, report.seconds);
  if (report.global_batch > 0) {
    fmt::print("global batch {} samples, {} a slot", report.global_batch, report.batch);
    if (report.noise_scale > 0) fmt::print(", noise scale {:.0f}", report.noise_scale);
    fmt::print("\n");
  }
  if (report.working > 0)
    fmt::print("{} of {} nodes work in a step: more would make it slower\n", report.working,
               report.nodes.size());
  if (!report.nodes.empty()) {
    fmt::print("\n{:<20} {:<22} {:>10} {:>11} {:>9}  {}\n", "node", "from", "batches", "batches/s", "ping ms",
               "");
  }
  for (const auto& node : report.nodes) {
    fmt::print("{:<20} {:<22} {:>10} {:>11.0f} {:>9.1f}  {}\n", node.name, node.peer, node.batches,
               node.batches_per_second, node.round_trip_ms, node.engine);
    if (!node.reason.empty()) fmt::print("{:<20} {}: {}\n", "", node.standing, node.reason);
    if (node.lanes > 1) fmt::print("{:<20} {} slots at once\n", "", node.lanes);
    if (!node.codec_up.empty()) fmt::print("{:<20} up: {}; down: {}\n", "", node.codec_up, node.codec_down);
  }
  if (!report.departures.empty()) fmt::print("\nleft:\n");
  for (const auto& departure : report.departures) {
    fmt::print("  {:>8.1f} s  {:<20} {:>10} batches  {}\n", departure.seconds, departure.name,
               departure.batches, departure.reason);
  }
}

Result<StatusReport> report_on(const std::string& target) {
  if (std::filesystem::is_directory(target)) return read(target);
  if (target.find(':') == std::string::npos)
    return invalid("there is no run folder {}; give one, or a coordinator's HOST:PORT", target);
  W5XDE_TRY(const Address address, parse_address(target));
  return ask(address);
}

Status status(const std::string& target, const std::string& json) {
  W5XDE_TRY(const StatusReport report, report_on(target));
  print(report);
  return write_text(json, to_json(report));
}

}  // namespace

void add_status(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("status", "Who is in a run, how fast, and why a node was dropped.");
  const auto target = std::make_shared<std::string>(), json = std::make_shared<std::string>();
  command->add_option("HOST:PORT|RUN", *target, "The coordinator, or the run's folder")->required();
  command->add_option("--json", *json, "Write the status to this file too")->group(kRecordingGroup);
  command->footer("Examples:\n  w5xde status 127.0.0.1:5555\n  w5xde status runs/a");
  command->callback([target, json, &code] { code = exit_code(status(*target, *json)); });
}

}  // namespace w5xde
