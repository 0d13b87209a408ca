// w5xde status: how a run is doing, asked of its coordinator or read from its folder.
#include "wire/status.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "base/errors.h"
#include "commands/command.h"
#include "commands/run_status.h"
#include "net/connection.h"
#include "net/tcp.h"
#include "settings.h"
#include "w5xde/version.h"
#include "wire/hello.h"

namespace w5xde {

namespace {

struct StatusCommand {
  std::string target;
  std::string json;
  double wait_seconds = 5;
};

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

Result<StatusReport> ask(const Address& address, double wait_seconds) {
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
  loop.after(duration_of(wait_seconds), [&] {
    if (!observer.answer)
      observer.answer = disconnected(fmt::format(
          "{} took the question and gave no answer within {} s; it may be loading a model or data: "
          "--wait SECONDS waits longer",
          address.to_string(), wait_seconds));
  });
  loop.run_until([&] { return observer.answer.has_value(); });
  return std::move(*observer.answer);
}

Result<RunStatus> status_of(const std::string& target, double wait_seconds) {
  const auto ask_there = [wait_seconds](const Address& address) { return ask(address, wait_seconds); };
  std::error_code error;
  if (std::filesystem::is_directory(target, error)) return status_of_folder(target, ask_there);
  if (target.find(':') == std::string::npos)
    return invalid("there is no run folder {}; give one, or a coordinator's HOST:PORT", target);
  W5XDE_TRY(const Address address, parse_address(target));
  W5XDE_TRY(StatusReport report, ask_there(address));
  return RunStatus{std::move(report), {}};
}

Status status(const StatusCommand& options) {
  if (!(options.wait_seconds > 0)) return invalid("--wait must be more than 0 seconds");
  W5XDE_TRY(const RunStatus found, status_of(options.target, options.wait_seconds));
  fmt::print("{}", to_text(found));
  return write_text(options.json, to_json(found.report));
}

}  // namespace

void add_status(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("status", "Who is in a run, how fast, and why a node was dropped.");
  const auto options = std::make_shared<StatusCommand>();
  command->add_option("HOST:PORT|RUN", options->target, "The coordinator, or the run's folder")->required();
  command->add_option("--wait", options->wait_seconds,
                      "How many seconds to wait for the coordinator's answer");
  command->add_option("--json", options->json, "Write the status to this file too")->group(kRecordingGroup);
  command->footer("Examples:\n  w5xde status 127.0.0.1:5555\n  w5xde status runs/a");
  command->callback([options, &code] { code = exit_code(status(*options)); });
}

}  // namespace w5xde
