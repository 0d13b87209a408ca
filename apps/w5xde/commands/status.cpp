// w5xde status: how a run is doing, asked of its coordinator or read from its folder.
#include "wire/status.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "base/errors.h"
#include "commands/command.h"
#include "commands/run_status.h"
#include "local_pool/route.h"
#include "net/connection.h"
#include "net/tcp.h"
#include "settings.h"
#include "w5xde/version.h"
#include "wire/hello.h"
#include "wire/proof.h"

namespace w5xde {

namespace {

struct StatusCommand {
  std::string target;
  CertificateFlags certificates;
  std::string json;
  double wait_seconds = 5;
};

// Asks once and takes the answer.
class Observer final : public Connection::Owner {
 public:
  Observer(std::unique_ptr<Stream> stream, const std::optional<Route::Keys>& keys) : keys_(keys) {
    if (keys_) stream = keys_->tls.wrap(std::move(stream));
    connection_ = Connection::start(std::move(stream), *this, limits());
    Head hello;
    encode(Hello{.software = "w5xde " + std::string(kVersion), .name = "observer", .role = "observer"},
           hello);
    (void)connection_->send({.type = FrameType::hello, .head = hello});
    if (!keys_) ask();
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
    // The handshake is done now, and what proves the invitation is known.
    if (header.type == FrameType::hello && keys_) {
      prove();
      ask();
    }
    return {};
  }
  void closed(const Error& reason) override {
    if (!answer) answer = Error(reason);
  }

  std::optional<Result<StatusReport>> answer;

 private:
  void prove() {
    Proof proof;
    const auto secret = connection_->stream().session_secret();
    if (keys_->invitation && secret) {
      proof.invitation = keys_->invitation->id;
      proof.code = proof_of(keys_->invitation->secret, *secret, keys_->identity);
    }
    Head head;
    encode(proof, head);
    (void)connection_->send({.type = FrameType::proof, .head = head});
  }
  void ask() {
    Head question;
    encode(StatusReport{}, question);
    (void)connection_->send({.type = FrameType::status, .head = question});
  }

  const std::optional<Route::Keys>& keys_;
  std::shared_ptr<Connection> connection_;
};

Result<StatusReport> ask(const Route& route, double wait_seconds) {
  const Address& address = route.address;
  W5XDE_TRY(const auto keys, route.keys());
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
  Observer observer(std::move(**stream), keys);
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

Result<RunStatus> status_of(const StatusCommand& options) {
  const std::string& target = options.target;
  std::error_code error;
  if (std::filesystem::is_directory(target, error)) {
    return status_of_folder(target, [&](const Address& address) -> Result<StatusReport> {
      W5XDE_TRY(const Route route, Route::to_owner(target, address));
      return ask(route, options.wait_seconds);
    });
  }
  if (target.find(':') == std::string::npos && !std::filesystem::is_regular_file(target, error))
    return invalid("there is no run folder {}; give one, an invitation, or a coordinator's HOST:PORT",
                   target);
  W5XDE_TRY(const Route route, Route::find(target, options.certificates));
  W5XDE_TRY(StatusReport report, ask(route, options.wait_seconds));
  return RunStatus{std::move(report), {}};
}

Status status(const StatusCommand& options) {
  if (!(options.wait_seconds > 0)) return invalid("--wait must be more than 0 seconds");
  W5XDE_TRY(const RunStatus found, status_of(options));
  fmt::print("{}", to_text(found));
  return write_text(options.json, to_json(found.report));
}

}  // namespace

void add_status(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("status", "Who is in a run, how fast, and why a node was dropped.");
  const auto options = std::make_shared<StatusCommand>();
  command
      ->add_option("INVITATION|HOST:PORT|RUN", options->target,
                   "An observer's or owner's invitation, the coordinator, or the run's folder")
      ->required();
  add_certificate_flags(*command, options->certificates,
                        "The coordinator's certificate must lead to one of these, PEM, and bear its HOST");
  command->add_option("--wait", options->wait_seconds,
                      "How many seconds to wait for the coordinator's answer");
  command->add_option("--json", options->json, "Write the status to this file too")->group(kRecordingGroup);
  command->footer("Examples:\n  w5xde status 127.0.0.1:5555\n  w5xde status runs/a");
  command->callback([options, &code] { code = exit_code(status(*options)); });
}

}  // namespace w5xde
