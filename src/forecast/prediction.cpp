#include "forecast/prediction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/limits.h"
#include "forecast/rehearsal.h"
#include "forecast/traffic.h"
#include "learn/learner.h"
#include "lease/apportion.h"
#include "lease/team_size.h"
#include "wire/messages.h"

namespace w5xde {

namespace {

// Measured: seconds of one pass over memory, a float, on one core of an ordinary machine; and what a step of
// Adam takes beside those of plain SGD.
constexpr double kPassSeconds = 0.45e-9;
constexpr double kAdamSeconds = 5e-9;
constexpr double kProcessBytes = 8e6;  // measured: a coordinator with nothing to do

// Facts of TCP: what it sends at once when it begins, or begins again after a pause of these seconds, before
// it has heard of the other side; and what is left of a link's rate beside Ethernet's, IP's and its headers.
constexpr double kFirstWindowBytes = 14600;
constexpr double kPauseSeconds = 0.2;
constexpr double kGoodput = 0.95;

// Limits of exchange_seconds_for(): no machine that computes anything is quicker or slower.
constexpr double kExchangeSecondsMin = 10e-6, kExchangeSecondsMax = 2e-3;

double block_bytes(const Situation& situation) {
  return static_cast<double>(situation.shape.floats) * sizeof(float);
}

// What an optimizer has beside each parameter, and what it takes longer for that.
struct OptimizerCost {
  double floats = 0, seconds = 0;
};
OptimizerCost cost_of(const OptimizerOptions& optimizer) {
  if (optimizer.kind != OptimizerOptions::Kind::sgd) return {2, kAdamSeconds};
  return optimizer.momentum > 0 ? OptimizerCost{1, kPassSeconds} : OptimizerCost();
}

std::uint32_t cores_used(const Situation& situation) {
  return std::max(1u, std::min(situation.nodes, situation.cores));
}

// How many slots a node computes at once where `nodes` nodes work.
std::uint32_t lanes_of(const Situation& situation, std::uint32_t nodes) {
  const std::uint32_t slots = std::max(1u, situation.config.step_slots() / nodes);
  if (situation.config.threads > 1 || slots * situation.slot_seconds <= kShortSeconds) return 1;
  const bool shared = situation.one_machine();
  return std::clamp(situation.cores / (shared ? nodes : situation.nodes), 1u, slots);
}

// The coordinator's own work, without what sockets cost it.
struct OwnWork {
  double contribution = 0;  // one, until it is part of the step's sum
  double version = 0;       // the next
  double leases = 0;        // of a step: their samples
};

OwnWork work_of(const Situation& situation, const Traffic& traffic) {
  const auto floats = static_cast<double>(situation.shape.floats);
  // A step writes the parameters, and a copy of the version that is on its way.
  const double step_seconds = 2 * kPassSeconds + cost_of(situation.config.optimizer).seconds;
  return {.contribution = floats * kPassSeconds + traffic.contribution_decode_seconds,
          .version = floats * step_seconds + traffic.parameters_encode_seconds,
          .leases = situation.config.step_slots() * traffic.slot_encode_seconds};
}

// How much longer than at the link's rate a transfer takes that begins after a pause: what may be on its way
// doubles with every round trip, until the link is full.
double ramp_seconds(double bytes, double flows, const LinkSpeed& link) {
  const double full_window = link.bytes_per_second * link.round_trip_seconds / flows;
  double window = kFirstWindowBytes, sent = 0, seconds = 0;
  while (window < full_window && sent + window < bytes) {
    sent += window;
    seconds += link.round_trip_seconds;
    window *= 2;
  }
  return std::max(0.0, seconds - sent * flows / link.bytes_per_second);
}

Prediction::Seconds sync_on_loopback(const Situation& situation, const Traffic& traffic,
                                     const Rehearsal& step) {
  // The coordinator's end of each byte and exchange is one thread's; the nodes' ends are done side by side.
  const double end_seconds = kSecondsPerByte / 2;
  const double slots = situation.config.step_slots();
  const OwnWork work = work_of(situation, traffic);
  return {
      .compute = step.seconds,
      // Leases go out while nodes compute, on the cores that they compute on.
      .link_down = (step.nodes + 1) * traffic.parameters * end_seconds +
                   slots * traffic.slot * kSecondsPerByte / situation.cores,
      .link_up = (step.contributions + 1) * traffic.contribution * end_seconds,
      .round_trips = (step.contributions / situation.cores + 1) * situation.exchange_seconds,
      .coordinator = step.contributions * work.contribution + work.version + work.leases / situation.cores};
}

// Where contributions and parameters travel in parts, both directions are in use at once. What is waited for
// is the longer one, and of the other the part that is alone on its way: the first up, or the last down.
void overlap(double parts, double& up, double& down, double& coordinator) {
  coordinator = std::max(coordinator / parts, coordinator - std::max(up, down));
  (up < down ? up : down) /= parts;
}

Prediction::Seconds sync_over_link(const Situation& situation, const Traffic& traffic,
                                   const Rehearsal& step) {
  const LinkSpeed& link = situation.link;
  const double rate = link.bytes_per_second * kGoodput;
  const double slots = situation.config.step_slots();
  const double end_seconds = situation.exchange_seconds / 2;
  OwnWork work = work_of(situation, traffic);
  work.contribution += end_seconds;
  Prediction::Seconds seconds;
  seconds.compute = step.seconds;
  const double leases = slots * traffic.slot / rate;
  seconds.link_down = step.nodes * traffic.parameters / rate + std::max(0.0, leases - step.seconds);
  // All but a node's last contribution can go up while it computes the next.
  const double early = (step.contributions - step.nodes) * traffic.contribution / rate;
  const double meanwhile = step.seconds * (1 - step.nodes / step.contributions);
  const double early_rest = std::max(0.0, early - meanwhile);
  double last = step.nodes * traffic.contribution / rate;
  // One contribution is added up while the next arrives.
  const double adding = step.contributions * work.contribution;
  seconds.coordinator =
      work.version + std::max(work.contribution, adding - last - early_rest - step.seconds / 2);
  if (traffic.parts > 1) overlap(traffic.parts, last, seconds.link_down, seconds.coordinator);
  seconds.link_up = last + early_rest;
  // The nodes' end of each exchange is done side by side; the last one is waited for from end to end.
  const double side_by_side = std::min<double>(step.nodes, cores_used(situation));
  seconds.round_trips = link.round_trip_seconds + end_seconds * (step.contributions / side_by_side + 1);
  if (seconds.compute + seconds.link_up > kPauseSeconds + link.round_trip_seconds)
    seconds.round_trips += ramp_seconds(traffic.parameters, step.nodes, link);
  if (seconds.compute + seconds.link_down > kPauseSeconds + link.round_trip_seconds)
    seconds.round_trips += ramp_seconds(traffic.contribution, step.nodes, link);
  return seconds;
}

// Which nodes have a part in a step, and how large, when `nodes` of them could.
Rehearsal rehearse(const Situation& situation, const Traffic& traffic, std::uint32_t nodes) {
  const LinkSpeed& link = situation.link;
  const std::uint32_t slots = situation.config.step_slots();
  Rehearsal::Options options{
      .slots = slots,
      .grain = lease_grain(traffic.gradient_codec, slots),
      .nodes = nodes,
      .slot_seconds = situation.slot_seconds / lanes_of(situation, nodes) + traffic.slot_decode_seconds,
      // What a coordinator believes an exchange to cost, not what it does cost.
      .exchange_seconds =
          exchange_seconds(link.round_trip_seconds, traffic.contribution, link.bytes_per_second),
      // On a machine of its own a node is steadier than beside the coordinator and whatever else runs there.
      .unsteadiness = link.loopback() ? kDeviationUnmeasured : Rehearsal::Options().unsteadiness};
  // Of more nodes all are assumed to work: the rehearsal takes the square of their number.
  if (!link.loopback() && nodes <= kFewNodes) {
    options.step_seconds = options.exchange_seconds + traffic.parameters / link.bytes_per_second;
    // All nodes, unless fewer work than could: those do not take turns.
    if (nodes == cores_used(situation) && nodes < situation.nodes) {
      options.nodes = situation.nodes;
      options.lanes = nodes;
    }
  }
  return Rehearsal::of(options);
}

Prediction predict_sync(const Situation& situation, const Traffic& traffic, std::uint32_t nodes) {
  const RunConfig& config = situation.config;
  Rehearsal step = rehearse(situation, traffic, nodes);
  step.seconds += traffic.parameters_decode_seconds +
                  step.contributions / step.nodes * traffic.contribution_encode_seconds;
  Prediction prediction;
  prediction.contributions = step.contributions;
  prediction.nodes_computing = step.nodes;
  prediction.seconds = situation.link.loopback() ? sync_on_loopback(situation, traffic, step)
                                                 : sync_over_link(situation, traffic, step);
  const Prediction::Seconds& seconds = prediction.seconds;
  prediction.steps_per_second =
      1 / (seconds.compute + seconds.link_down + seconds.link_up + seconds.round_trips + seconds.coordinator);
  prediction.batches_per_second = prediction.steps_per_second * config.step_slots();
  prediction.bytes_down = step.nodes * traffic.parameters + config.step_slots() * traffic.slot +
                          step.contributions * traffic.lease;
  prediction.bytes_up = step.contributions * traffic.contribution;
  return prediction;
}

// Of fewer nodes where that is faster, as the pool itself finds out (lease/team_size.h).
Prediction predict_team(const Situation& situation, const Traffic& traffic) {
  const std::uint32_t all = cores_used(situation);
  Prediction best = predict_sync(situation, traffic, all);
  if (situation.config.transport.who_works != WhoWorks::fastest) return best;
  // One that computes with all cores is its machine's.
  const std::uint32_t machines = lanes_of(situation, 1) > 1 ? 1 : all;
  for (std::uint32_t nodes = std::bit_floor(std::max(all, 2u) - 1); nodes > 0; nodes /= 2) {
    const Prediction fewer = predict_sync(situation, traffic, nodes);
    if (best.steps_per_second < TeamSize::bar(nodes, all, machines) * fewer.steps_per_second) best = fewer;
  }
  return best;
}

Prediction predict_async(const Situation& situation, const Traffic& traffic) {
  const RunConfig& config = situation.config;
  const double working = cores_used(situation);
  const double slots = async_lease_slots(situation.slot_seconds, config.step_slots(),
                                         lease_grain(traffic.gradient_codec, config.step_slots()));
  // Every version is somebody's contribution: a node that answers is as many behind as others answered.
  const double down =
      std::min(traffic.whole_version, working * traffic.parameters) + traffic.lease + slots * traffic.slot;
  const double up = traffic.contribution;
  const OwnWork work = work_of(situation, traffic);
  const double compute = slots * (situation.slot_seconds + traffic.slot_decode_seconds) +
                         traffic.contribution_encode_seconds + traffic.parameters_decode_seconds;
  const double thinking = work.contribution + work.version + slots * traffic.slot_encode_seconds;
  Prediction prediction;
  Prediction::Seconds& seconds = prediction.seconds;
  if (situation.link.loopback()) {
    // All share the cores.
    const double moving = situation.exchange_seconds + (down + up) * kSecondsPerByte;
    seconds.compute = (compute + moving + thinking) / situation.cores;
    seconds.coordinator = moving / 2 + thinking;
  } else {
    const double rate = situation.link.bytes_per_second * kGoodput;
    seconds.compute = compute / working;
    seconds.link_down = down / rate;
    seconds.link_up = up / rate;
    // A node has two leases: one to compute, one on its way.
    seconds.round_trips = (situation.link.round_trip_seconds + compute + (down + up) / rate) / (2 * working);
    seconds.coordinator = situation.exchange_seconds / 2 + thinking;
  }
  prediction.contributions = 1;
  prediction.nodes_computing = working;
  prediction.steps_per_second = 1 / std::max({seconds.compute, seconds.link_down, seconds.link_up,
                                              seconds.round_trips, seconds.coordinator});
  prediction.batches_per_second = prediction.steps_per_second * slots;
  prediction.bytes_down = down;
  prediction.bytes_up = up;
  return prediction;
}

Bottleneck bottleneck_of(const Prediction::Seconds& seconds) {
  const std::array<double, 5> all = {seconds.compute, seconds.link_down, seconds.link_up, seconds.round_trips,
                                     seconds.coordinator};
  return static_cast<Bottleneck>(std::ranges::max_element(all) - all.begin());
}

double coordinator_memory(const Situation& situation, const Traffic& traffic, const Prediction& prediction) {
  const double working = cores_used(situation);
  // The version, the one before, and what the optimizer has beside it.
  double blocks = 2 + cost_of(situation.config.optimizer).floats;
  // Contributions on their way in, and those that wait for their other half.
  blocks += std::min<double>(Learner::kSpareMax, std::max(prediction.contributions, working)) + 1;
  // The version that is made part by part, while nodes still compute with the one before.
  if (traffic.parts > 1) blocks += 1;
  // async: versions on their way out.
  if (situation.config.mode == Mode::async) blocks += working;
  if (traffic.parameter_codec.kind != GradientKind::none) {
    // What nodes were shown, twice; the difference; the encoder's; and for nodes that are behind, differences
    // of versions, which together are no larger than a version (versions/broadcast).
    blocks += 5 + 1;
  }
  if (!traffic.gradient_codec.stateless()) blocks += 2;  // the nodes' feedback, gathered for a checkpoint
  const double step_samples = situation.config.step_slots() * static_cast<double>(situation.config.batch);
  return kProcessBytes + blocks * block_bytes(situation) +
         3 * step_samples * static_cast<double>(situation.sample_bytes);
}

double node_memory(const Situation& situation, const Traffic& traffic, const Prediction& prediction) {
  // The version at hand and the one arriving; sums that wait and one that is being sent.
  double blocks = 2 + 3;
  // The gradients of two slots in every other lane, and sums of them.
  const auto computing = static_cast<std::uint32_t>(std::max(1.0, std::round(prediction.nodes_computing)));
  if (situation.config.mode == Mode::sync) blocks += 4.0 * (lanes_of(situation, computing) - 1);
  if (traffic.parameter_codec.kind != GradientKind::none) blocks += 1;
  // Feedback as it is and as it will be, with its velocity where there is one.
  if (!traffic.gradient_codec.stateless())
    blocks +=
        situation.config.optimizer.momentum > 0 && traffic.gradient_codec.kind == GradientKind::topk ? 4 : 2;
  const double slots = 2.0 * situation.config.step_slots() / cores_used(situation);
  return static_cast<double>(situation.engine_bytes) + blocks * block_bytes(situation) +
         slots * situation.config.batch * static_cast<double>(situation.sample_bytes) + traffic.kept_bytes;
}

}  // namespace

std::string_view name_of(Bottleneck bottleneck) {
  constexpr std::string_view kNames[] = {"compute", "downlink", "uplink", "round trips", "coordinator"};
  return kNames[static_cast<std::size_t>(bottleneck)];
}

Prediction predict(const Situation& situation) {
  const Traffic traffic = traffic_of(situation);
  Prediction prediction = situation.config.mode == Mode::sync ? predict_team(situation, traffic)
                                                              : predict_async(situation, traffic);
  prediction.bottleneck = bottleneck_of(prediction.seconds);
  prediction.node_bytes_down = prediction.bytes_down / situation.nodes;
  prediction.node_bytes_up = prediction.bytes_up / situation.nodes;
  prediction.samples_bytes = traffic.kept_bytes;
  prediction.coordinator_memory_bytes =
      static_cast<std::uint64_t>(coordinator_memory(situation, traffic, prediction));
  prediction.node_memory_bytes = static_cast<std::uint64_t>(node_memory(situation, traffic, prediction));
  return prediction;
}

double exchange_seconds_for(Situation situation, double step_seconds) {
  double shortest = kExchangeSecondsMin, longest = kExchangeSecondsMax;
  // As fine as anybody could measure it.
  while (longest > 1.01 * shortest) {
    situation.exchange_seconds = std::sqrt(shortest * longest);
    (1 / predict(situation).steps_per_second < step_seconds ? shortest : longest) =
        situation.exchange_seconds;
  }
  return std::sqrt(shortest * longest);
}

}  // namespace w5xde
