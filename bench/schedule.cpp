// What scheduling costs: the round alone, without sockets, models or nodes, per answer. Nodes are played by a
// queue of the times at which they will be done; only the calls into the round are timed.
#include <fmt/format.h>

#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "base/random.h"
#include "harness.h"
#include "lease/round.h"

namespace w5xde::bench {
namespace {

constexpr std::uint32_t kSlotsANode = 4;
constexpr double kSlotSeconds = 0.01;
constexpr double kUnsteadiness = 0.1;
constexpr auto kTick = std::chrono::milliseconds(20);

class Pool {
 public:
  Pool(Mode mode, std::uint32_t nodes)
      : mode_(mode), round_({.mode = mode, .slots = kSlotsANode * nodes}), nodes_(nodes) {
    for (NodeId id = 0; id < nodes; ++id) {
      round_.join(id);
      round_.set_exchange_seconds(id, 0.0005);
      round_.set_step_seconds(id, 0.001);
    }
    lease();
  }

  // Seconds that `answers` answers took in the round, on average.
  double run(std::uint64_t answers) {
    spent_ = Duration::zero();
    for (std::uint64_t i = 0; i < answers;) {
      if (done_.empty() || done_.top().at > tick_) {
        now_ = tick_;
        tick_ += kTick;
        lease();
        continue;
      }
      const NodeId id = done_.top().node;
      now_ = done_.top().at;
      done_.pop();
      answer(id);
      ++i;
    }
    return seconds_of(spent_) / static_cast<double>(answers);
  }

 private:
  struct Player {
    std::deque<Grant> leases;
    bool computes = false;
    double lease_seconds = 0;
  };
  struct Done {
    Instant at;
    NodeId node = 0;
    bool operator>(const Done& other) const { return at > other.at; }
  };

  template <class Call>
  auto timed(const Call& call) {
    const Instant begun = clock_.now();
    auto result = call();
    spent_ += clock_.now() - begun;
    return result;
  }

  void begin(NodeId id) {
    Player& player = nodes_[id];
    while (!player.leases.empty() && mode_ == Mode::sync && player.leases.front().step < round_.front_step())
      player.leases.pop_front();
    const bool can =
        !player.leases.empty() && (mode_ == Mode::async || player.leases.front().step == round_.front_step());
    if (player.computes || !can) return;
    player.computes = true;
    player.lease_seconds = player.leases.front().block.slot_count * kSlotSeconds *
                           (1 + kUnsteadiness * (2 * random_.unit() - 1));
    done_.push({now_ + duration_of(player.lease_seconds), id});
  }

  void lease() {
    for (const Grant& grant : timed([&] { return round_.grants(now_); })) {
      nodes_[grant.node].leases.push_back(grant);
      begin(grant.node);
    }
  }

  void answer(NodeId id) {
    Player& player = nodes_[id];
    const Grant grant = player.leases.front();
    player.leases.pop_front();
    player.computes = false;
    const bool complete = timed([&] {
      (void)round_.answer(id, grant.lease, grant.block, {player.lease_seconds}, now_);
      const bool is_complete = mode_ == Mode::sync && round_.front_complete();
      if (is_complete) round_.commit(now_);
      return is_complete;
    });
    lease();
    if (!complete) return begin(id);
    for (NodeId node = 0; node < nodes_.size(); ++node) begin(node);
  }

  Mode mode_;
  Round round_;
  std::vector<Player> nodes_;
  std::priority_queue<Done, std::vector<Done>, std::greater<>> done_;
  Random random_{1};
  SteadyClock clock_;
  Instant now_, tick_;
  Duration spent_ = Duration::zero();
};

void measure(Mode mode, const Options& options, Report& report) {
  const std::string name = mode == Mode::sync ? "sync" : "async";
  report.heading(fmt::format("{}: the round, per answer, {} slots a node", name, kSlotsANode));
  for (const std::uint32_t nodes : {100u, 1'000u, 10'000u}) {
    Pool few(mode, 100), many(mode, nodes);
    (void)few.run(1'000);
    (void)many.run(10ull * nodes);  // until all are measured
    const Compared compared = interleave(
        options.rounds, [&] { return 1e6 * many.run(5ull * nodes); }, [&] { return 1e6 * few.run(20'000); });
    report.add(fmt::format("{} {} nodes (baseline: 100)", name, nodes), "us", compared);
  }
}

int run(int argc, char** argv) {
  const auto options = parse_options(argc, argv, "What scheduling costs, by the number of nodes.");
  if (!options.ok()) {
    fmt::print(stderr, "{}\n", options.error().message);
    return 2;
  }
  if (!*options) return 0;
  Report report;
  for (const Mode mode : {Mode::sync, Mode::async}) {
    if ((mode == Mode::sync ? std::string("sync") : std::string("async")).find((*options)->only) !=
        std::string::npos) {
      measure(mode, **options, report);
    }
  }
  if ((*options)->json_path.empty()) return 0;
  return report.write_json((*options)->json_path).ok() ? 0 : 1;
}

}  // namespace
}  // namespace w5xde::bench

int main(int argc, char** argv) {
  return w5xde::bench::run(argc, argv);
}
