// How things travel: which codec in which direction, and what lossy ones have still to say.
#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "coordinator/coordinator.h"
#include "lease/tuning.h"

namespace w5xde {

namespace {

// With a newcomer that is sent its version: then others are called too.
constexpr auto kCatchUpPatience = std::chrono::seconds(5);

}  // namespace

Status Coordinator::begin_transfer(const CheckpointFile& checkpoint) {
  codecs_ = CodecChoice(options_.config, shape_);
  broadcast_.emplace(shape_, Broadcast::Options{options_.config.transport.generic(), codecs_.part_floats()},
                     &pool_, loop_);
  broadcast_->set_codec(codecs_.parameter_codec());
  W5XDE_CHECK(checkpoints_.resume(checkpoint, shape_.parameters));
  if (broadcast_->codec().kind == GradientKind::none || !checkpoint.layout_of("shown")) return {};
  std::vector<float> shown(shape_.parameters->floats());
  W5XDE_CHECK(checkpoint.read("shown", *shape_.parameters, shown));
  broadcast_->restore(shown, *learner_);
  return {};
}

Offer Coordinator::make_offer(const Material& material) const {
  const RunConfig& config = options_.config;
  const Transport& transport = config.transport;
  const auto dims = material.data->inputs().shape.dims();
  Offer offer{.run = options_.run,
              .model = config.model,
              .loss = material.loss,
              .sample_shape = {dims.begin(), dims.end()},
              .classes = material.data->classes(),
              .threads = config.threads,
              .model_fingerprint = learner_->model_fingerprint(),
              .newest_parameters = config.mode == Mode::async,
              .momentum = CodecChoice::nodes_gather_momentum(config) ? config.optimizer.momentum : 0,
              .socket_buffer = transport.socket_buffer,
              .keep_alive = transport.keep_alive,
              .quick_ack = transport.quick_ack,
              .receive_chunk = transport.receive_chunk,
              .combined_send = transport.combined_send};
  if (material.model_file) {
    offer.model_hash = hash128_hex(material.model_file->bytes());
    offer.model_bytes = material.model_file->bytes().size();
  }
  return offer;
}

// From what the links carry and what the nodes compute just now.
void Coordinator::choose_codecs() {
  // While a checkpoint is written, what nodes were shown must stay.
  if ((!codecs_.automatic_up() && !codecs_.automatic_down()) || checkpoints_.in_progress()) return;
  const auto computing_nodes = static_cast<double>(std::max<std::size_t>(1, round_->roster().working()));
  const double share = static_cast<double>(options_.config.step_slots()) / computing_nodes;
  std::vector<CodecChoice::Conditions> nodes;
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready()) continue;
    nodes.push_back({.node = id,
                     .step_seconds = share * round_->roster().at(id).pace.seconds_per_slot,
                     .step_seconds_others = share * round_->roster().mean_seconds_per_slot(),
                     .bytes_per_second_up = session->connection().incoming_bytes_per_second(),
                     .bytes_per_second_down = session->outgoing_bytes_per_second(),
                     .takes_part = round_->roster().at(id).works() ||
                                   round_->roster().at(id).standing == Standing::catching_up});
  }
  codecs_.choose(nodes);
  if (codecs_.parameter_codec() != broadcast_->codec()) broadcast_->set_codec(codecs_.parameter_codec());
}

// With lossy codecs a newcomer is sent far more than those who have the version before, and what its link
// carries is not known before: that is got over with while the others go on.
bool Coordinator::calls_newcomers() const {
  return codecs_.differences_down() && options_.config.transport.who_works == WhoWorks::fastest &&
         options_.config.mode == Mode::sync;
}

void Coordinator::bring_up_to_date() {
  if (!calls_newcomers()) return;
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready()) continue;
    const bool follows = broadcast_->follows(session->version_sent(), *learner_);
    const Member& member = round_->roster().at(id);
    const bool called = member.standing == Standing::catching_up;
    if (const auto since = catching_up_.find(id); since != catching_up_.end()) {
      if (session->connection().all_arrived()) {
        // Versions have come and gone meanwhile; what it still lacks takes no longer than that.
        catching_up_.erase(since);
        round_->caught_up(id);
      } else if (loop_.now() - since->second > kCatchUpPatience) {
        round_->set_late(id);
      }
    } else if (called && !member.up_to_date) {
      catching_up_[id] = loop_.now();
      if (follows) continue;
      if (Status sent = send_parameters(*session); !sent.ok()) session->close(std::move(sent).error());
    } else if (!called && !member.works()) {
      round_->set_up_to_date(id, follows);
    }
  }
}

bool Coordinator::uses_cache(const Session& session) const {
  return samples_->uses_cache(session.is_local(), session.connection().incoming_bytes_per_second());
}

Status Coordinator::send_parameters(Session& session) {
  step_.set_out();
  return session.send_parameters(*learner_, exact_broadcast_ ? *exact_broadcast_ : *broadcast_,
                                 codecs_.codec_down());
}

// What exchanges and steps cost over a link. Nodes that connect from one address share one. Where fewer nodes
// work than could, what differs between them is chance, and would cut steps unevenly: they get the mean.
// Where all may work, the difference stays: the node that finds the link slow first leaves it to the others.
void Coordinator::measure_links() {
  struct Costs {
    double exchange = 0, step = 0, nodes = 0;
  };
  std::map<std::string, Costs> links;
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready()) continue;
    measure_link(*session);
    if (!round_->roster().limited() || tally_.batches_of(id) == 0 || !round_->roster().at(id).works())
      continue;
    Costs& costs = links[session->host()];
    costs.exchange += session->exchange_seconds();
    costs.step += step_seconds(*session);
    ++costs.nodes;
  }
  for (const auto& [id, session] : sessions_) {
    const auto link = links.find(session->host());
    if (!session->is_ready() || link == links.end() || !round_->roster().at(id).works()) continue;
    round_->set_exchange_seconds(id, link->second.exchange / link->second.nodes);
    round_->set_step_seconds(id, link->second.step / link->second.nodes);
  }
}

void Coordinator::measure_link(Session& session) {
  round_->set_exchange_seconds(session.id(), session.exchange_seconds());
  round_->set_step_seconds(session.id(), step_seconds(session));
  round_->set_swap_in_seconds(session.id(), swap_in_seconds(session));
}

// A node that has rested lacks a version of the parameters, and samples where nodes keep them.
double Coordinator::swap_in_seconds(Session& session) const {
  const std::uint64_t bytes = shape_.floats * sizeof(float) + (uses_cache(session) ? samples_->bytes() : 0);
  // A node of this machine takes bytes as fast as it computes: what is measured then is no link's rate.
  const double rate = session.is_local() ? 0 : session.outgoing_bytes_per_second();
  return static_cast<double>(bytes) * std::max(kSecondsPerByte, rate > 0 ? 1 / rate : 0);
}

double Coordinator::step_seconds(Session& session) const {
  // Of a version as those get it who have the one before: one that has rested is sent more, but once.
  const double usual = broadcast_->usual_bytes();
  const double bytes = usual > 0 ? usual : static_cast<double>(shape_.floats * sizeof(float));
  return session.step_seconds(bytes, codecs_.answer_form(session.id()).part_floats > 0);
}

void Coordinator::gather_feedback() {
  std::vector<NodeId> nodes;
  for (const auto& [id, session] : sessions_) {
    if (session->is_ready() && session->has_feedback()) nodes.push_back(id);
  }
  checkpoints_.gather(nodes, [this](NodeId id) { return sessions_.at(id)->ask_feedback().ok(); });
}

void Coordinator::drop_silent() {
  for (const auto& [id, session] : sessions_) {
    const double rate = session->connection().incoming_bytes_per_second();
    if (const auto waited = checkpoints_.waited_too_long(id, rate))
      session->close(disconnected(fmt::format("it did not send its error feedback in {:.0f} s", *waited)));
  }
}

// Not when the run has ended meanwhile: what nodes that are sent home hold back would be missing.
void Coordinator::write_once_gathered() {
  if (running() && checkpoints_.may_write()) write_gathered();
}

Status Coordinator::fed_back(Session& session, const Feedback& about, std::span<const float> feedback) {
  if (!all_finite(feedback)) return corrupt("feedback with NaN or infinity");
  const bool awaited = checkpoints_.feedback().gathering();
  if (about.leaving) {
    round_->set_leaving(session.id());
    checkpoints_.feedback().take_over(session.id(), feedback, about.taken_over);
  } else {
    const bool rests = round_->roster().limited() && !round_->roster().at(session.id()).works();
    checkpoints_.feedback().gathered(session.id(), feedback, rests || run_over());
  }
  if (awaited) write_once_gathered();
  return {};
}

void Coordinator::hand_over_feedback() {
  // The heir's copy, if it is on its way, is from before.
  if (!checkpoints_.feedback().orphaned() || checkpoints_.feedback().gathering() ||
      checkpoints_.in_progress() || !running())
    return;
  const auto heir = std::ranges::find_if(sessions_, [&](const auto& member) {
    return member.second->is_ready() && !member.second->is_leaving() &&
           round_->roster().at(member.first).works() &&
           checkpoints_.feedback().may_hand_over_to(member.first) &&
           codecs_.answer_form(member.first).form == Form::gradient;
  });
  if (heir == sessions_.end()) return;
  if (Status sent = heir->second->send_feedback(checkpoints_.feedback().hand_over(heir->first)); !sent.ok())
    heir->second->close(std::move(sent).error());
}

void Coordinator::feedback_gone(const Session& session) {
  if (session.has_feedback() && running()) {
    tally_.feedback_lost();
    tally_.event(fmt::format("what {} had still to say of its gradients is lost with it", session.name()));
  }
  codecs_.forget(session.id());
  const bool awaited = checkpoints_.feedback().gathering();
  checkpoints_.feedback().gone(session.id());
  if (awaited) write_once_gathered();
}

}  // namespace w5xde
