#include "node/join.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <utility>

#include "net/signals.h"

namespace w5xde {

namespace {

constexpr unsigned kFruitlessStaysMax = 5;
constexpr Duration kProgressEvery = std::chrono::seconds(1);
constexpr std::string_view kToldToStop = "the node was told to stop";

// What a goodbye says, without that it is one.
std::string said_in(const std::string& goodbye) {
  constexpr std::string_view kBefore = "the other side left: ";
  return goodbye.starts_with(kBefore) ? goodbye.substr(kBefore.size()) : goodbye;
}

// Connects and works, again and again.
class Member {
 public:
  Member(JoinOptions options, const Log& log)
      : options_(std::move(options)),
        log_(log),
        random_(static_cast<std::uint64_t>(getpid())),
        // Not SIGINT: a terminal sends that to every process, and a coordinator that is stopped still needs
        // what its nodes are computing.
        signals_(loop_, {SIGTERM}, [this](int) { told_to_leave(); }) {}

  Result<std::string> run() {
    connect();
    tell_of_progress();
    while (!result_) {
      loop_.run_until([&] { return result_ || (node_ && node_->ended()); },
                      [&] { return node_ && node_->waits_for_parameters(); });
      if (!result_) stay_over();
    }
    note_progress();
    return *result_;
  }

 private:
  void connect() {
    ConnectOptions connect_options = retries();
    connect_options.on_retry = [this](unsigned attempt, const Error& error, Duration delay) {
      tell_of_retry(attempt, attempt == 1 ? Error(error).within(nobody_there()) : error, delay);
    };
    connect_tcp(loop_, connect_options, random_, [this](Result<std::unique_ptr<Stream>> stream) {
      if (leaving_ || !stream.ok()) {
        if (leaving_) return leave(std::string(kToldToStop));
        result_ = std::move(stream).error().within(nobody_there());
        return;
      }
      start_node(std::move(*stream));
    });
  }

  void start_node(std::unique_ptr<Stream> stream) {
    const bool here = is_loopback(stream->peer());
    NodeOptions node = options_.node;
    node.model_files =
        here || node.invitation ? NodeOptions::ModelFiles::any : NodeOptions::ModelFiles::accepted;
    if (options_.tls) {
      stream = options_.tls->wrap(std::move(stream));
    } else if (!here && !std::exchange(warned_, true)) {
      log_.normal(
          "{}: warning: the connection to {} is not encrypted, and neither side proves who it is; an "
          "invitation "
          "(`w5xde invite`) does both",
          node.name, options_.address.to_string());
    }
    node_ = std::make_unique<Node>(loop_, std::move(node), log_);
    node_->start(std::move(stream));
  }

  ConnectOptions retries() const {
    return {.address = options_.address,
            .socket = {},
            .attempts_max = options_.attempts_max,
            .delay_first = options_.delay_first,
            .delay_max = options_.delay_max,
            .on_retry = {}};
  }

  void tell_of_progress() {
    note_progress();
    progress_timer_ = loop_.after(kProgressEvery, [this] { tell_of_progress(); });
  }

  void note_progress() {
    if (node_ && !node_->run().empty()) {
      done_.run = node_->run();
      done_.batches = batches_before_ + node_->slots_computed();
    }
    options_.on_progress(done_);
  }

  // The first failure is told at once. Then ever more seldom: it may go on for days.
  void tell_of_retry(unsigned attempt, const Error& error, Duration delay) const {
    if (!std::has_single_bit(attempt)) return;
    log_.normal("{}: {}; trying again in {:.1f} s (attempt {}{})", options_.node.name, error.message,
                seconds_of(delay), attempt,
                options_.attempts_max == 0 ? std::string() : fmt::format(" of {}", options_.attempts_max));
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
    note_progress();
    batches_before_ = done_.batches;
    node_.reset();
    if (leaving_ || (parted && reason.kind == ErrorKind::disconnected)) {
      leave(said_in(reason.message));
    } else if (!worth_another_try(reason, parted)) {
      result_ = reason;
    } else if (fruitless_stays_ == 0) {
      log_.normal("{}: {}; connecting again", options_.node.name, said_in(reason.message));
      connect();
    } else {
      // It was let in and sent away, or there was no room: asking again at once would not help.
      const Duration delay = retry_delay(retries(), fruitless_stays_, random_);
      tell_of_retry(fruitless_stays_, reason, delay);
      loop_.after(delay, [this] {
        if (!result_) connect();
      });
    }
  }

  void leave(std::string why) {
    log_.normal("{}: left: {}", options_.node.name, why);
    result_ = std::move(why);
  }

  // A byte that went wrong on its way is the link's fault, no matter which side saw it, and a coordinator
  // that is busy may have time later. One that says so every time will not.
  bool worth_another_try(const Error& reason, bool parted) const {
    if (reason.kind == ErrorKind::disconnected || reason.kind == ErrorKind::unavailable)
      return options_.attempts_max == 0 || fruitless_stays_ < options_.attempts_max;
    const bool may_pass =
        reason.kind == ErrorKind::corrupt || (reason.kind == ErrorKind::overloaded && parted);
    return may_pass && fruitless_stays_ < kFruitlessStaysMax;
  }

  void told_to_leave() {
    // Twice: somebody is in a hurry, and the coordinator knows what to do about lost nodes.
    if (leaving_ || !node_) leave(std::string(kToldToStop));
    leaving_ = true;
    if (node_) node_->leave(std::string(kToldToStop));
  }

  AsioLoop loop_;
  JoinOptions options_;
  const Log& log_;
  Random random_;
  Signals signals_;
  std::unique_ptr<Node> node_;
  bool leaving_ = false;
  bool warned_ = false;
  unsigned fruitless_stays_ = 0;  // in a row
  Contributed done_;
  std::uint64_t batches_before_ = 0;  // this stay
  Loop::TimerId progress_timer_ = 0;
  std::optional<Result<std::string>> result_;  // why it left
};

}  // namespace

Result<std::string> join(JoinOptions options, const Log& log) {
  return Member(std::move(options), log).run();
}

}  // namespace w5xde
