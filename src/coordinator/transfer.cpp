// How things travel: which codec in which direction, and what lossy ones have still to say.
#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "coordinator/coordinator.h"

namespace w5xde {

namespace {

// Where bytes move faster than this, sending a sample again costs less than looking for it.
constexpr double kCacheBytesPerSecondMax = 200e6;

// Of contributions, where the choice of a sparse codec is ours.
constexpr double kAutomaticDensity = 0.005;
// Of a step, before one is measured.
constexpr double kComputingGuessed = 0.1;
// With a newcomer that is sent its version: then others are called too.
constexpr auto kCatchUpPatience = std::chrono::seconds(5);
// With a node that was asked for its error feedback, beside what its link takes for it.
constexpr double kFeedbackSeconds = 5;
constexpr double kSlowestBytesPerSecond = 125e3;  // where that is not known

bool is_lossy(const GradientCodec& codec) {
  return codec.kind != GradientKind::none;
}

// What was asked for; none where the choice is ours.
GradientCodec fixed_codec(const std::string& setting) {
  return setting == "auto" ? GradientCodec() : parse_gradient_codec(setting).value();
}

}  // namespace

Status Coordinator::begin_transfer(const CheckpointFile& checkpoint) {
  const Transport& transport = options_.config.transport;
  if (transport.codec != "auto") codec_down_ = section_codec(transport.codec);
  answer_ = fixed_answer();
  part_floats_ = part_floats(shape_.floats, transport.part_bytes);
  broadcast_.emplace(shape_, Broadcast::Options{transport.generic(), part_floats_}, &pool_, loop_);
  broadcast_->set_codec(fixed_codec(transport.parameter_codec));
  feedback_.emplace(shape_.parameters);
  W5XDE_CHECK(feedback_->restore(checkpoint));
  if (!is_lossy(broadcast_->codec()) || !checkpoint.layout_of("shown")) return {};
  std::vector<float> shown(shape_.parameters->floats());
  W5XDE_CHECK(checkpoint.read("shown", *shape_.parameters, shown));
  broadcast_->restore(shown, *learner_);
  return {};
}

// Leases are made no larger than a node takes. A single slot cannot be made smaller.
Status Coordinator::check_lease_size(const Material& material) {
  const RunConfig& config = options_.config;
  lease_size_ = LeaseSize::of(*material.data, config.batch, config.transport.generic());
  if (!lease_size_.fits()) {
    return invalid(fmt::format(
        "a batch of {} samples is {} MiB, and {} MiB are the most that a node is sent at once. Lower "
        "--batch, "
        "and raise --accumulate for the same global batch",
        config.batch, lease_size_.payload_bytes_per_slot / kMiB, LeaseSize::kPayloadBytesMax / kMiB));
  }
  if (config.transport.sample_cache == "on" && !lease_size_.fits_with_numbers()) {
    return invalid(fmt::format(
        "with --sample-cache on, the numbers of a batch's {} samples are more than a node is sent at once. "
        "Lower --batch, and raise --accumulate for the same global batch, or use --sample-cache off",
        config.batch));
  }
  return {};
}

bool Coordinator::may_use_cache() const {
  return options_.config.transport.sample_cache != "off" && lease_size_.fits_with_numbers();
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
              .momentum = nodes_gather_momentum() ? config.optimizer.momentum : 0,
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

// What a sparse codec holds back would miss the momentum that it had gathered in the optimizer: nodes gather
// it there, and the optimizer does not once more (Deep Gradient Compression).
bool Coordinator::nodes_gather_momentum() const {
  const OptimizerOptions& optimizer = options_.config.optimizer;
  return fixed_codec(options_.config.transport.gradient_codec).kind == GradientKind::topk &&
         optimizer.kind == OptimizerOptions::Kind::sgd && optimizer.momentum > 0 && !optimizer.nesterov;
}

OptimizerOptions Coordinator::optimizer_options() const {
  OptimizerOptions optimizer = options_.config.optimizer;
  if (nodes_gather_momentum()) optimizer.momentum = 0;
  return optimizer;
}

std::uint32_t Coordinator::grain() const {
  const RunConfig& config = options_.config;
  return lease_grain(fixed_codec(config.transport.gradient_codec), config.step_slots());
}

AnswerForm Coordinator::fixed_answer() const {
  const Transport& transport = options_.config.transport;
  AnswerForm form;
  form.gradient = fixed_codec(transport.gradient_codec);
  form.form = is_lossy(form.gradient) ? Form::gradient : transport.generic() ? Form::generic : Form::direct;
  form.automatic = transport.codec_up() == "auto";
  if (!form.automatic && shape_.floats * sizeof(float) >= transport.codec_threshold)
    form.section = section_codec(transport.codec_up());
  return form;
}

AnswerForm Coordinator::answer_form(const Session& session) const {
  AnswerForm form = answer_;
  if (const auto policy = gradient_policies_.find(session.id()); policy != gradient_policies_.end()) {
    form.gradient = policy->second.codec();
    if (is_lossy(form.gradient)) form.form = Form::gradient;
  }
  const bool whole_chunks = form.gradient.by_chunks() && part_floats_ % kGradientChunk == 0;
  if (by_parts() && (form.form == Form::direct || whole_chunks)) form.part_floats = part_floats_;
  return form;
}

// From what the links carry and what the nodes compute just now.
void Coordinator::choose_gradient_codecs() {
  const Transport& transport = options_.config.transport;
  const bool up = transport.gradient_codec == "auto", down = transport.parameter_codec == "auto";
  // While a checkpoint is written, what nodes were shown must stay.
  if ((!up && !down) || writing_) return;
  const auto computing_nodes = static_cast<double>(std::max<std::size_t>(1, round_->crew_size()));
  double slowest_down = 0, longest = 0;
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready()) continue;
    const double share = static_cast<double>(options_.config.step_slots()) / computing_nodes;
    const double computing = share * round_->seconds_per_slot(id);
    longest = std::max(longest, computing);
    const double rate = session->outgoing_bytes_per_second();
    if (rate > 0 && (round_->takes_part(id) || round_->is_called(id)))
      slowest_down = slowest_down == 0 ? rate : std::min(slowest_down, rate);
    if (!up) continue;
    // One that has sent nothing yet: as others, over a link that is the same both ways.
    const double mean = share * round_->mean_seconds_per_slot();
    const double rate_up = session->connection().incoming_bytes_per_second();
    GradientPolicy& policy =
        gradient_policies_.try_emplace(id, *shape_.parameters, kAutomaticDensity).first->second;
    (void)policy.choose({rate_up > 0 ? rate_up : rate, computing > 0 ? computing
                                                       : mean > 0    ? mean
                                                                     : kComputingGuessed});
  }
  if (!down) return;
  // What sparse contributions change is sparse too, if the optimizer does not smear it: all of it is sent.
  const OptimizerOptions& optimizer = options_.config.optimizer;
  const bool sparse = optimizer.kind == OptimizerOptions::Kind::sgd && optimizer.momentum == 0 &&
                      optimizer.weight_decay == 0 && up;
  const double density =
      sparse ? std::min(1.0, 1.25 * kAutomaticDensity * static_cast<double>(round_->nodes())) : 0;
  if (!parameter_policy_ || density != parameter_density_) {
    parameter_policy_.emplace(*shape_.parameters, density);
    parameter_density_ = density;
  }
  if (const GradientCodec codec =
          parameter_policy_->choose({slowest_down, longest > 0 ? longest : kComputingGuessed});
      codec != broadcast_->codec()) {
    broadcast_->set_codec(codec);
  }
}

// With lossy codecs a newcomer is sent far more than those who have the version before, and what its link
// carries is not known before: that is got over with while the others go on.
bool Coordinator::calls_newcomers() const {
  const Transport& transport = options_.config.transport;
  const bool lossy = transport.gradient_codec == "auto" || transport.parameter_codec != "none";
  return lossy && transport.crew == "auto" && options_.config.mode == Mode::sync;
}

void Coordinator::bring_up_to_date() {
  if (!calls_newcomers()) return;
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready()) continue;
    const bool follows = broadcast_->follows(session->version_sent(), *learner_);
    const bool called = round_->is_called(id);
    if (const auto since = catching_up_.find(id); since != catching_up_.end()) {
      if (session->connection().all_arrived()) {
        // Versions have come and gone meanwhile; what it still lacks takes no longer than that.
        catching_up_.erase(since);
        round_->caught_up(id);
      } else if (loop_.now() - since->second > kCatchUpPatience) {
        round_->set_late(id);
      }
    } else if (called && round_->is_behind(id)) {
      catching_up_[id] = loop_.now();
      if (follows) continue;
      if (Status sent = send_parameters(*session); !sent.ok()) session->close(std::move(sent).error());
    } else if (!called && !round_->takes_part(id)) {
      round_->set_behind(id, !follows);
    }
  }
}

std::string Coordinator::in_parts(std::uint64_t floats) const {
  return floats == 0 ? "" : fmt::format(", {} parts", (shape_.floats + floats - 1) / floats);
}

std::string Coordinator::describe_up(const Session& session) const {
  const auto policy = gradient_policies_.find(session.id());
  const std::string gradients = policy != gradient_policies_.end()    ? policy->second.describe()
                                : answer_.form == Form::gradient      ? to_string(answer_.gradient)
                                : options_.config.transport.generic() ? "generic"
                                                                      : "direct";
  return fmt::format("{}, {}{}", gradients, session.describe_up(),
                     in_parts(answer_form(session).part_floats));
}

std::string Coordinator::describe_down(const Session& session) const {
  const std::string changes = parameter_policy_                     ? parameter_policy_->describe()
                              : is_lossy(broadcast_->codec())       ? to_string(broadcast_->codec())
                              : options_.config.transport.generic() ? "generic"
                                                                    : "direct";
  return fmt::format("{}, {}{}", changes,
                     codec_down_ ? to_string(codec_down_->lossless) : session.describe_down(),
                     in_parts(by_parts() ? part_floats_ : 0));
}

bool Coordinator::uses_cache(const Session& session) const {
  const Transport& transport = options_.config.transport;
  if (!may_use_cache()) return false;
  if (transport.sample_cache != "auto") return transport.sample_cache == "on";
  const std::string& peer = session.peer();
  const bool local = peer.starts_with("127.") || peer.starts_with("[::1]");
  const double rate = session.connection().incoming_bytes_per_second();
  return !local || (rate > 0 && rate < kCacheBytesPerSecondMax);
}

Batch Coordinator::batch_for(Session& session, const Grant& grant) {
  const bool train = grant.work == Work::train;
  Batches& batches = train ? *batches_ : *evaluation_batches_;
  const std::uint64_t first = train ? round_->step_slots().first_slot_of(grant.step) : 0;
  if (uses_cache(session)) {
    return batches.make_lacking(first + grant.block.first_slot, grant.block.slot_count, grant.work,
                                session.kept());
  }
  // This step's samples were put together when the step before was leased.
  if (train)
    batches.prepare(round_->step_slots().first_slot_of(grant.step + 1), round_->slots_of(grant.step + 1));
  return batches.make(first + grant.block.first_slot, grant.block.slot_count);
}

Status Coordinator::send_parameters(Session& session) {
  version_out_ = true;
  return session.send_parameters(*learner_, exact_broadcast_ ? *exact_broadcast_ : *broadcast_, codec_down());
}

// What exchanges and steps cost over a link. Nodes that come from one address share one: what differs between
// those of a crew is chance, and would cut steps unevenly. Where all may take part it must stay: who finds
// the link slow first leaves it to the others.
void Coordinator::measure_links() {
  struct Costs {
    double exchange = 0, step = 0, nodes = 0;
  };
  std::map<std::string, Costs> links;
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready()) continue;
    measure_link(*session);
    if (!round_->has_crew() || tally_.batches_of(id) == 0 || !round_->takes_part(id)) continue;
    Costs& costs = links[session->host()];
    costs.exchange += session->exchange_seconds();
    costs.step += step_seconds(*session);
    ++costs.nodes;
  }
  for (const auto& [id, session] : sessions_) {
    const auto link = links.find(session->host());
    if (!session->is_ready() || link == links.end() || !round_->takes_part(id)) continue;
    round_->set_exchange_seconds(id, link->second.exchange / link->second.nodes);
    round_->set_step_seconds(id, link->second.step / link->second.nodes);
  }
}

void Coordinator::measure_link(Session& session) {
  round_->set_exchange_seconds(session.id(), session.exchange_seconds());
  round_->set_step_seconds(session.id(), step_seconds(session));
  const Dataset& data = *material_->data;
  const std::uint64_t sample_bytes = data.inputs().sample_bytes() + data.targets().sample_bytes();
  round_->set_settled(session.id(), uses_cache(session) && data.samples() * sample_bytes >= kDearBytes);
}

double Coordinator::step_seconds(Session& session) const {
  // Of a version as those get it who have the one before: one that has rested is sent more, but once.
  const double usual = broadcast_->usual_bytes();
  const double bytes = usual > 0 ? usual : static_cast<double>(shape_.floats * sizeof(float));
  return session.step_seconds(bytes, answer_form(session).part_floats > 0);
}

// A checkpoint has what the nodes' codecs have still to say, as of the contributions that are in it: the
// request comes before the parameters of the version after. Those who have rested since are not asked again:
// it is as much as the model.
void Coordinator::gather_feedback() {
  std::set<NodeId> nodes;
  for (const auto& [id, session] : sessions_) {
    if (!session->is_ready() || !session->has_feedback() || feedback_->has_copy(id)) continue;
    if (feedback_->awaits(id) || session->ask_feedback().ok()) nodes.insert(id);
  }
  feedback_->gather(nodes, loop_.now());
}

// A checkpoint does not wait for a node longer than its link could need, several times over.
void Coordinator::drop_silent() {
  if (!feedback_->gathering()) return;
  const auto bytes = static_cast<double>(2 * shape_.parameters->floats() * sizeof(float));
  for (const auto& [id, asked] : feedback_->awaited()) {
    Session& session = *sessions_.at(id);
    const double rate = session.connection().incoming_bytes_per_second();
    const double patience = kFeedbackSeconds + 4 * bytes / (rate > 0 ? rate : kSlowestBytesPerSecond);
    if (seconds_of(loop_.now() - asked) > patience)
      session.close(disconnected(fmt::format("it did not send its error feedback in {:.0f} s", patience)));
  }
}

// Not when the run has ended meanwhile: what nodes that are sent home hold back would be missing.
void Coordinator::write_once_gathered() {
  if (writing_ && phase_ == Phase::training && !feedback_->gathering()) write_gathered();
}

Status Coordinator::fed_back(Session& session, const Feedback& about, std::span<const float> feedback) {
  if (!all_finite(feedback)) return corrupt("feedback with NaN or infinity");
  const bool awaited = feedback_->gathering();
  if (about.leaving) {
    feedback_->take_over(session.id(), feedback, about.taken_over);
  } else {
    const bool rests = round_->has_crew() && !round_->takes_part(session.id());
    feedback_->gathered(session.id(), feedback, rests || run_over());
  }
  if (awaited) write_once_gathered();
  return {};
}

void Coordinator::hand_over_feedback() {
  // The heir's copy, if it is on its way, is from before.
  if (!feedback_->orphaned() || feedback_->gathering() || writing_ || phase_ != Phase::training) return;
  const auto heir = std::ranges::find_if(sessions_, [&](const auto& member) {
    return member.second->is_ready() && !member.second->is_leaving() && round_->takes_part(member.first) &&
           feedback_->may_hand_over_to(member.first) && answer_form(*member.second).form == Form::gradient;
  });
  if (heir == sessions_.end()) return;
  if (Status sent = heir->second->send_feedback(feedback_->hand_over(heir->first)); !sent.ok())
    heir->second->close(std::move(sent).error());
}

void Coordinator::feedback_gone(const Session& session) {
  if (session.has_feedback() && phase_ == Phase::training) {
    tally_.feedback_lost();
    tally_.event(fmt::format("what {} had still to say of its gradients is lost with it", session.name()));
  }
  gradient_policies_.erase(session.id());
  const bool awaited = feedback_->gathering();
  feedback_->gone(session.id());
  if (awaited) write_once_gathered();
}

}  // namespace w5xde
