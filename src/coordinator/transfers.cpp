#include "coordinator/transfers.h"

#include <algorithm>
#include <string>

#include "learn/seeds.h"
#include "lease/tuning.h"

namespace w5xde {

namespace {

// With a newcomer that is sent its version: then others catch up too.
constexpr Duration kCatchUpPatience = duration_of(kLateSecondsUnmeasured);

}  // namespace

Transfers::Transfers(const Pool& pool, const BlockShape& shape)
    : pool_(pool),
      shape_(shape),
      codecs_(pool.config, shape),
      broadcast_(shape, {pool.config.transport.generic(), codecs_.part_floats()}, pool.threads, pool.loop) {
  broadcast_.set_codec(codecs_.parameter_codec());
  if (!pool_.shares_memory) return;
  if (auto probe = SharedProbe::make(); probe.ok()) probe_ = std::move(*probe);
}

Status Transfers::resume(const CheckpointFile& from) {
  if (broadcast_.codec().kind == GradientKind::none || !from.layout_of("shown")) return {};
  std::vector<float> shown(shape_.parameters->floats());
  W5XDE_CHECK(from.read("shown", *shape_.parameters, shown));
  broadcast_.restore(shown, learner());
  return {};
}

void Transfers::forget(NodeId node) {
  catching_up_.erase(node);
  codecs_.forget(node);
}

bool Transfers::uses_cache(const Session& session) const {
  return pool_.samples.uses_cache(session.is_local(), session.connection().incoming_bytes_per_second());
}

std::vector<Grant> Transfers::with_samples(const std::vector<Grant>& leased) {
  std::vector<Grant> here, wait;
  const auto look_at = [&](const Grant& grant) {
    Session& session = pool_.sessions.at(grant.node);
    const KeptSamples* kept = uses_cache(session) ? &session.kept() : nullptr;
    const bool ready = pool_.samples.ready(grant, pool_.round.step_slots(), kept);
    // A node's leases stay in their order.
    const bool overtakes = std::ranges::count(wait, grant.node, &Grant::node) > 0;
    (ready && !overtakes ? here : wait).push_back(grant);
  };
  for (const Grant& grant : waiting_) {
    if (pool_.round.holds(grant.node, grant.lease)) look_at(grant);
  }
  for (const Grant& grant : leased) look_at(grant);
  waiting_ = std::move(wait);
  return here;
}

Result<Batch> Transfers::make_batch(Session& session, const Grant& grant) {
  const StepSlots& steps = pool_.round.step_slots();
  return uses_cache(session) ? pool_.samples.make_lacking(grant, steps, session.kept())
                             : pool_.samples.make_batch(grant, steps);
}

Status Transfers::send_lease(Session& session, const Grant& grant, Batch batch) {
  const Round& round = pool_.round;
  const RunConfig& config = pool_.config;
  const bool train = grant.work == Work::train;
  const bool of_this_version = !train || config.mode == Mode::async || grant.step == round.front_step();
  if (of_this_version && session.version_sent() != learner().version()) W5XDE_CHECK(send_parameters(session));
  // In sync the version of a step's parameters is known before they are: they are those of the step's number.
  const std::uint64_t ahead = of_this_version ? 0 : grant.step - round.front_step();
  Session::LeaseForm form{.generic = config.transport.generic(),
                          .codec = codecs_.codec_down(),
                          .answer = codecs_.answer_form(session.id())};
  if (of_this_version && shares_down(session)) form.state = learner().state();
  if (train && shares_up(session)) {
    form.memory = pool_.training.learner().take_buffer();
    if (form.memory->shared()) {
      form.answer = {.form = Form::shared};
    } else {
      pool_.training.learner().give_back(std::exchange(form.memory, nullptr));
    }
  }
  return session.send_lease(grant, learner().version() + ahead, step_seed(config.seed, grant.step),
                            std::move(batch), std::move(form));
}

Status Transfers::send_parameters(Session& session) {
  pool_.training.step().set_out();
  if (shares_down(session)) return session.share_parameters(learner());
  return session.send_parameters(learner(), exact_ ? *exact_ : broadcast_, codecs_.codec_down());
}

void Transfers::send_newest(Session& session) {
  if (!session.awaits(learner().version())) return;
  if (session.version_sent() != kNoVersion && session.connection().queued_bytes() > 0) return;
  session.close_unless(send_parameters(session));
}

void Transfers::send_newest_to_all() {
  pool_.sessions.each_ready([this](Session& session) { send_newest(session); });
}

void Transfers::send_ahead(Session& session) {
  // Who shares memory has it when it is whole.
  if (!learner().next() || shares_down(session) || !session.has_lease_of(learner().version() + 1)) return;
  if (session.connection().queued_bytes() > 0) return;
  session.close_unless(session.send_ahead(learner(), broadcast_, codecs_.codec_down()));
}

void Transfers::send_ahead_to_all() {
  pool_.sessions.each_ready([this](Session& session) { send_ahead(session); });
}

bool Transfers::newcomers_catch_up() const {
  return codecs_.differences_down() && pool_.config.transport.who_works == WhoWorks::fastest &&
         pool_.config.mode == Mode::sync;
}

void Transfers::bring_up_to_date() {
  if (!newcomers_catch_up()) return;
  pool_.sessions.each_ready([this](Session& session) {
    const NodeId id = session.id();
    const bool follows = broadcast_.follows(session.version_sent(), learner());
    const Member& member = pool_.round.roster().at(id);
    const bool called = member.standing == Standing::catching_up;
    if (const auto since = catching_up_.find(id); since != catching_up_.end()) {
      if (session.connection().all_arrived()) {
        // Versions have come and gone meanwhile; what it still lacks takes no longer than that.
        catching_up_.erase(since);
        pool_.round.caught_up(id);
      } else if (pool_.loop.now() - since->second > kCatchUpPatience) {
        pool_.round.set_late(id);
      }
    } else if (called && !member.up_to_date) {
      catching_up_[id] = pool_.loop.now();
      if (!follows) session.close_unless(send_parameters(session));
    } else if (!called && !member.works()) {
      pool_.round.set_up_to_date(id, follows);
    }
  });
}

void Transfers::choose_codecs() {
  if (!codecs_.automatic_up() && !codecs_.automatic_down()) return;
  const Roster& roster = pool_.round.roster();
  const auto computing_nodes = static_cast<double>(std::max<std::size_t>(1, roster.working()));
  const double share = static_cast<double>(pool_.config.step_slots()) / computing_nodes;
  std::vector<CodecChoice::Conditions> nodes;
  pool_.sessions.each_ready([&](Session& session) {
    const Member& member = roster.at(session.id());
    nodes.push_back({.node = session.id(),
                     .step_seconds = share * member.pace.seconds_per_slot,
                     .step_seconds_others = share * roster.mean_seconds_per_slot(),
                     .bytes_per_second_up = session.connection().incoming_bytes_per_second(),
                     .bytes_per_second_down = session.outgoing_bytes_per_second(),
                     .takes_part = member.works() || member.standing == Standing::catching_up});
  });
  codecs_.choose(nodes);
  if (codecs_.parameter_codec() != broadcast_.codec()) broadcast_.set_codec(codecs_.parameter_codec());
}

// Nodes that connect from one address share a link. Where fewer nodes work than could, what differs between
// them is chance, and would cut steps unevenly: they get the mean. Where all may work, the difference stays:
// the node that finds the link slow first leaves it to the others.
void Transfers::measure_links() {
  struct Costs {
    double exchange = 0, step = 0, nodes = 0;
  };
  Round& round = pool_.round;
  std::map<std::string, Costs> links;
  pool_.sessions.each_ready([&](Session& session) {
    measure_link(session);
    const Member& member = round.roster().at(session.id());
    if (!round.roster().limited() || member.pace.seconds_per_slot == 0 || !member.works()) return;
    Costs& costs = links[session.host()];
    costs.exchange += session.exchange_seconds(answer_bytes(session));
    costs.step += step_seconds(session);
    ++costs.nodes;
  });
  pool_.sessions.each_ready([&](Session& session) {
    const auto link = links.find(session.host());
    if (link == links.end() || !round.roster().at(session.id()).works()) return;
    round.set_exchange_seconds(session.id(), link->second.exchange / link->second.nodes);
    round.set_step_seconds(session.id(), link->second.step / link->second.nodes);
  });
}

void Transfers::measure_link(Session& session) {
  pool_.round.set_exchange_seconds(session.id(), session.exchange_seconds(answer_bytes(session)));
  pool_.round.set_step_seconds(session.id(), step_seconds(session));
  pool_.round.set_swap_in_seconds(session.id(), swap_in_seconds(session));
}

// A node that has rested lacks a version of the parameters, and samples where nodes keep them.
double Transfers::swap_in_seconds(Session& session) const {
  const std::uint64_t samples = uses_cache(session) ? pool_.samples.bytes() : 0;
  const std::uint64_t bytes = (shares_down(session) ? 0 : shape_.floats * sizeof(float)) + samples;
  // A node of this machine takes bytes as fast as it computes: what is measured then is no link's rate.
  const double rate = session.is_local() ? 0 : session.outgoing_bytes_per_second();
  return static_cast<double>(bytes) * std::max(kSecondsPerByte, rate > 0 ? 1 / rate : 0);
}

double Transfers::step_seconds(Session& session) const {
  // The bytes for a node that has the version before. A node that has rested needs more, but only once.
  const double usual = broadcast_.usual_bytes();
  const double bytes = shares_down(session) ? 0
                       : usual > 0          ? usual
                                            : static_cast<double>(shape_.floats * sizeof(float));
  return session.step_seconds(bytes, answer_bytes(session),
                              codecs_.answer_form(session.id()).part_floats > 0);
}

std::vector<NamedBlock> Transfers::blocks() const {
  if (broadcast_.shown().empty()) return {};
  return {{"shown", shape_.parameters.get(), broadcast_.shown()}};
}

void Transfers::begin_exact() {
  if (exact()) return;
  exact_.emplace(shape_, Broadcast::Options{pool_.config.transport.generic(), codecs_.part_floats()},
                 pool_.threads, pool_.loop);
  pool_.sessions.each_ready([](Session& session) { session.forget_version(); });
}

void Transfers::end_exact() {
  if (!exact_) return;
  exact_.reset();
  pool_.sessions.each_ready([](Session& session) { session.forget_version(); });
}

}  // namespace w5xde
