#include "node/join.h"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "net/signals.h"

namespace w5xde {

namespace {

constexpr unsigned kFruitlessStaysMax = 5;

// Connects and works, again and again.
class Member {
 public:
  Member(JoinOptions options, const Log& log)
      : options_(std::move(options)),
        log_(log),
        random_(static_cast<std::uint64_t>(getpid())),
        // Not SIGINT: a terminal sends that to every process there is, and whoever started the node decides
        // what it means. A coordinator that is stopped still needs what its nodes are computing.
        signals_(loop_, {SIGTERM}, [this](int) { told_to_leave(); }) {}

  Status run() {
    connect();
    while (!result_) {
      loop_.run_until([&] { return result_ || (node_ && node_->ended()); },
                      [&] { return node_ && node_->waits_for_parameters(); });
      if (!result_) stay_over();
    }
    return *result_;
  }

 private:
  void connect() {
    ConnectOptions connect_options{.address = options_.address, .attempts_max = options_.attempts_max};
    connect_options.on_retry = [this](unsigned attempt, const Error& error, Duration delay) {
      log_.normal("{}: {}; trying again in {:.1f} s (attempt {} of {})", options_.node.name, error.message,
                  seconds_of(delay), attempt, options_.attempts_max);
    };
    connect_tcp(loop_, connect_options, random_, [this](Result<std::unique_ptr<Stream>> stream) {
      if (leaving_ || !stream.ok()) {
        result_ = leaving_ ? Status() : Status(std::move(stream).error().within(nobody_there()));
        return;
      }
      node_ = std::make_unique<Node>(loop_, options_.node, log_);
      node_->start(std::move(*stream));
    });
  }

  std::string nobody_there() const {
    return fmt::format("no coordinator answers at {}; check the address, and that `w5xde serve` runs there",
                       options_.address.to_string());
  }

  void stay_over() {
    const Error reason = *node_->ended();
    const bool parted = node_->parted();
    log_.verbose("{}: {} slots computed; {}", options_.node.name, node_->slots_computed(),
                 reason.to_string());
    fruitless_stays_ = node_->slots_computed() > 0 ? 0 : fruitless_stays_ + 1;
    node_.reset();
    // A byte that went wrong on its way is the link's fault, whichever side saw it. One that does so every
    // time is not.
    const bool link_at_fault = reason.kind == ErrorKind::disconnected ||
                               (reason.kind == ErrorKind::corrupt && fruitless_stays_ < kFruitlessStaysMax);
    if (leaving_ || (parted && reason.kind == ErrorKind::disconnected)) {
      result_ = Status();
    } else if (!link_at_fault) {
      result_ = Status(reason);
    } else {
      log_.normal("{}: {}; connecting again", options_.node.name, reason.message);
      connect();
    }
  }

  void told_to_leave() {
    // Twice: somebody is in a hurry, and the coordinator knows what to do about lost nodes.
    if (leaving_ || !node_) result_ = Status();
    leaving_ = true;
    if (node_) node_->leave("the node was told to stop");
  }

  AsioLoop loop_;
  JoinOptions options_;
  const Log& log_;
  Random random_;
  Signals signals_;
  std::unique_ptr<Node> node_;
  bool leaving_ = false;
  unsigned fruitless_stays_ = 0;  // in a row
  std::optional<Status> result_;
};

}  // namespace

Status join(JoinOptions options, const Log& log) {
  return Member(std::move(options), log).run();
}

}  // namespace w5xde
