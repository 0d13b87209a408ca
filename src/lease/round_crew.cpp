// Who takes part in a step.
#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "lease/round.h"
#include "lease/tuning.h"

namespace w5xde {

namespace {

// Another is better if it takes no more than this part: who is in the crew stays, having parameters and
// samples, where the difference is less.
constexpr double kMuchBetter = 0.7;
// Exchanges that come to take no more than this part (a codec was chosen) are another pool's: how many take
// part is guessed anew.
constexpr double kFarCheaper = 1.0 / 3;

}  // namespace

bool Round::takes_part(NodeId id, const Node& node) const {
  return crew_.size() > 0 ? node.in_crew && !node.late : could_work(id, node) && !node.behind;
}

bool Round::is_called(NodeId id) const {
  const Node& node = nodes_.at(id);
  return crew_.size() > 0 ? node.called : could_work(id, node) && node.behind;
}

std::size_t Round::crew_size() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(nodes_, [&](const auto& node) { return takes_part(node.first, node.second); }));
}

// Of those who take part: others were measured when they had other cores, perhaps.
double Round::crew_seconds_per_slot() const {
  const double mean = mean_seconds([this](NodeId id, const Node& node) { return takes_part(id, node); });
  return mean > 0 ? mean : mean_seconds_per_slot();
}

Crew::Pool Round::crew_pool() const {
  Crew::Pool pool{.workers = turns_.workers([this](NodeId id) { return nodes_.at(id).late; }),
                  .compute_seconds = slots_of(front_step_) * crew_seconds_per_slot()};
  std::set<std::string> links, machines;
  std::uint32_t lanes = 1;
  for (const auto& [id, node] : nodes_) {
    if (takes_part(id, node)) lanes = std::max(lanes, node.lanes);
    if (node.seconds_per_slot > 0) pool.exchange_seconds = std::max(pool.exchange_seconds, node.step_seconds);
    if (!could_work(id, node)) continue;
    // Of one that is nowhere nothing is known: it has a link of its own.
    links.insert(node.host.empty() ? std::to_string(id) : node.host);
    const std::string& machine = turns_.machine(id);
    machines.insert(machine.empty() ? std::to_string(id) : machine);
  }
  pool.links = std::max<std::size_t>(1, links.size());
  pool.machines = std::max<std::size_t>(1, machines.size());
  // One node has no use for all of a machine's cores where its share is done sooner than lanes are woken.
  const double share_seconds = pool.compute_seconds * lanes / static_cast<double>(pool.machines);
  if (!options_.lanes || share_seconds <= kOneLaneSeconds)
    pool.machines = std::max<std::size_t>(1, pool.workers);
  return pool;
}

// Where a node that has rested needs no more than one that has not, everybody has a turn.
bool Round::crew_takes_turns() const {
  return !options_.dear && std::ranges::none_of(nodes_, [](const auto& entry) {
    return entry.second.behind || entry.second.settled;
  });
}

// Of a machine's nodes; 0: as many as it has lanes.
std::size_t Round::nodes_at_once() const {
  if (crew_.size() == 0 || !crew_rotates_) return 0;
  const std::size_t machines = std::max<std::size_t>(1, turns_.machines());
  return (crew_.size() + machines - 1) / machines;
}

// Of one that was never measured: as others behind its link, which come first. A link that nobody was
// measured behind is tried once.
double Round::whole_step_seconds(const Node& node) const {
  if (node.seconds_per_slot > 0) return node.step_seconds + slots_of(front_step_) * node.seconds_per_slot;
  double longest = 0;
  for (const auto& [id, other] : nodes_) {
    if (other.seconds_per_slot > 0 && other.host == node.host)
      longest = std::max(longest, whole_step_seconds(other));
  }
  return longest;
}

// Those who are in the crew stay, while it is their turn if it takes turns; places are taken by those who
// would have a whole step done first, but by one of each machine before any machine's second: that would
// halve the cores of the first.
std::set<NodeId> Round::best_nodes(std::size_t count) const {
  std::vector<std::tuple<double, bool, NodeId>> fit;  // the best first
  for (const auto& [id, node] : nodes_) {
    if (crew_rotates_ ? could_work(id, node) : !node.late)
      fit.emplace_back(whole_step_seconds(node) * (node.in_crew ? kMuchBetter : 1), !node.in_crew, id);
  }
  std::ranges::sort(fit);
  std::set<std::string> machines;
  std::vector<NodeId> order, seconds;
  for (const auto& place : fit) {
    const NodeId id = std::get<NodeId>(place);
    const std::string& machine = turns_.machine(id);
    (machine.empty() || machines.insert(machine).second ? order : seconds).push_back(id);
  }
  order.insert(order.end(), seconds.begin(), seconds.end());
  order.resize(std::min(order.size(), count));
  return {order.begin(), order.end()};
}

// All change at once, when nobody who is to come in is behind.
void Round::choose_crew() {
  if (options_.crews && options_.dear && mean_seconds_per_slot() > 0) {
    const Crew::Pool pool = crew_pool();
    if (!guessed_from_ || pool.exchange_seconds < kFarCheaper * *guessed_from_) {
      guessed_from_ = pool.exchange_seconds;
      crew_.guess(pool);
    }
  }
  const std::size_t size = crew_.size();
  if (size == 0) {
    if (std::ranges::any_of(nodes_, [&](const auto& node) { return is_called(node.first); }))
      crew_.disturbed();
    return;
  }
  const std::set<NodeId> chosen = best_nodes(size);
  bool behind = false, changed = false;
  for (auto& [id, node] : nodes_) {
    node.called = !node.in_crew && chosen.contains(id);
    behind = behind || (node.called && node.behind);
  }
  if (behind) return crew_.disturbed();
  for (auto& [id, node] : nodes_) {
    node.called = false;
    const bool before = std::exchange(node.in_crew, chosen.contains(id));
    changed = changed || before != node.in_crew;
  }
  // Steps are as long whoever's turn it is.
  if (changed && !crew_rotates_) crew_.changed();
}

}  // namespace w5xde
