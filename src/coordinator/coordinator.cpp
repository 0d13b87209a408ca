#include "coordinator/coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/hash.h"
#include "learn/seeds.h"

namespace w5xde {

namespace {

constexpr auto kTick = std::chrono::milliseconds(20);
// How long nodes have to finish what they hold when an async run is stopped.
constexpr auto kStopPatience = std::chrono::seconds(5);
constexpr std::uint32_t kEvaluationBatch = 256;
constexpr auto kRowEvery = std::chrono::milliseconds(100);
constexpr auto kProgressEvery = std::chrono::seconds(1);
// Past max_staleness a contribution counts less, past this many times that it is refused.
constexpr std::uint64_t kRefusedStaleness = 4;
constexpr std::size_t kDeparturesKept = 20;

}  // namespace

Coordinator::Coordinator(AsioLoop& loop, Options options, RunFolder folder, const Log& log)
    : loop_(loop),
      options_(std::move(options)),
      log_(log),
      pool_(std::max(1u, std::thread::hardware_concurrency()) - 1),
      recorder_(loop, std::move(folder), log) {}

Coordinator::~Coordinator() {
  loop_.cancel(tick_timer_);
}

Result<std::unique_ptr<Coordinator>> Coordinator::listen(AsioLoop& loop, Options options, RunFolder folder,
                                                         const Log& log) {
  std::unique_ptr<Coordinator> self(new Coordinator(loop, std::move(options), std::move(folder), log));
  W5XDE_TRY(self->listener_,
            TcpListener::listen(loop, self->options_.listen, {},
                                [raw = self.get()](std::unique_ptr<Stream> stream) { raw->accept(std::move(stream)); }));
  self->arm_tick();
  return self;
}

void Coordinator::accept(std::unique_ptr<Stream> stream) {
  if (sessions_.size() >= Limits{}.connections_max || phase_ == Phase::ended) return;
  SectionCodec codec;
  codec.lossless = parse_lossless(options_.config.codec).value();
  const NodeId id = next_node_++;
  Session::Host& host = *this;
  sessions_[id] = std::make_unique<Session>(id, host, std::move(stream), codec, &pool_, log_);
}

Status Coordinator::begin(Material material) {
  const RunConfig& config = options_.config;
  const CheckpointInfo& from = material.checkpoint.info();
  batches_.emplace(material.data,
                   Sampler::Options{.samples = material.data->samples(), .batch = config.batch, .seed = config.seed});
  const std::uint64_t slots_total = config.slots_total(batches_->sampler().slots_per_epoch());
  const std::uint64_t steps_total = (slots_total + config.step_slots() - 1) / config.step_slots();
  W5XDE_TRY(const Schedule schedule, parse_schedule(config.schedule, steps_total));
  W5XDE_TRY(learner_, Learner::from(material.checkpoint,
                                    {.optimizer = config.optimizer, .schedule = schedule, .clip_norm = config.clip_norm},
                                    &pool_));
  round_.emplace(Round::Options{.mode = config.mode,
                                .slots = config.step_slots(),
                                .slots_total = slots_total,
                                .first_step = from.step});
  reduction_.emplace(round_->slots_of(from.step), learner_->floats());
  if (material.evaluation) {
    evaluation_batches_.emplace(material.evaluation, Sampler::Options{.samples = material.evaluation->samples(),
                                                                      .batch = kEvaluationBatch,
                                                                      .shuffle = false});
  }
  counted_ = from;
  seconds_before_ = from.seconds;
  checkpointed_version_ = from.version;
  recorder_.resume(from.step);
  const auto dims = material.data->inputs().shape.dims();
  offer_ = {.run = options_.run,
            .model = config.model,
            .loss = material.loss,
            .sample_shape = {dims.begin(), dims.end()},
            .classes = material.data->classes(),
            .threads = config.threads,
            .codec = config.codec,
            .model_fingerprint = learner_->model_fingerprint(),
            .newest_parameters = config.mode == Mode::async};
  if (material.model_file) {
    offer_.model_hash = hash128_hex(material.model_file->bytes());
    offer_.model_bytes = material.model_file->bytes().size();
  }
  material_.emplace(std::move(material));
  for (auto& [id, session] : sessions_) session->offer();
  if (run_over()) start_training();  // a finished run that is started again only says so
  return {};
}

void Coordinator::arm_tick() {
  tick_timer_ = loop_.after(kTick, [this] {
    tick();
    if (phase_ != Phase::ended) arm_tick();
  });
}

void Coordinator::tick() {
  if (phase_ == Phase::waiting || phase_ == Phase::ended) return;
  const Instant now = loop_.now();
  const RunConfig& config = options_.config;
  if (config.seconds > 0 && seconds() >= config.seconds && !out_of_time_) {
    out_of_time_ = true;
    round_->hold(true);
  }
  if (stopping_ && !writing_ && now - stop_asked_ > kStopPatience) {
    log_.error("the nodes did not finish in time; the run goes on from the last checkpoint");
    return end(Status());
  }
  // An async run has a cursor only when nothing is out.
  if (config.mode == Mode::async && now >= checkpoint_due_) round_->hold(true);
  advance();
  if (phase_ == Phase::ended) return;
  pump();
  if (on_progress && now >= progress_due_) {
    progress_due_ = now + kProgressEvery;
    on_progress(status());
  }
}

Status Coordinator::ready(Session& session) {
  round_->join(session.id());
  ++nodes_seen_;
  if (engine_.empty()) engine_ = session.about().engine;
  if (processor_.empty()) processor_ = session.about().processor;
  event(fmt::format("{} joined from {} ({})", session.name(), session.peer(), session.about().engine));
  if (session.about().engine != engine_ || session.about().processor != processor_) {
    log_.normal("{} computes with {} on {}, others with {} on {}: the last bits of the result may depend on who "
                "computes what",
                session.name(), session.about().engine, session.about().processor, engine_, processor_);
  }
  recorder_.add(RunDatabase::NodeRow{.name = session.name(),
                                     .peer = session.peer(),
                                     .engine = session.about().engine,
                                     .joined_seconds = seconds()});
  if (phase_ == Phase::waiting && round_->nodes() >= options_.nodes_awaited) start_training();
  if (phase_ != Phase::waiting) pump();
  return {};
}

void Coordinator::start_training() {
  phase_ = Phase::training;
  begun_ = row_since_ = loop_.now();
  checkpoint_due_ = begun_ + duration_of(options_.config.checkpoint_seconds);
  progress_due_ = begun_;
  advance();
}

void Coordinator::ended(Session& session, const Error& reason) {
  const NodeId id = session.id();
  if (session.is_ready()) {
    round_->leave(id);
    session.update_tally();
    left_.push_back(session.tally);
    departures_.push_back({session.name(), seconds(), reason.message});
    if (departures_.size() > kDeparturesKept) departures_.pop_front();
    recorder_.add(RunDatabase::NodeRow{.name = session.name(),
                                       .peer = session.peer(),
                                       .engine = session.about().engine,
                                       .joined_seconds = seconds(),
                                       .left_seconds = seconds(),
                                       .reason = reason.message,
                                       .batches = session.tally.batches});
    if (phase_ == Phase::training) event(fmt::format("{} left: {}", session.name(), reason.message));
    // What no node can compute, none will; the others would only follow.
    if (phase_ == Phase::training && reason.kind == ErrorKind::invalid) fail(reason);
  } else if (!session.name().empty()) {
    log_.normal("{} ({}) did not come in: {}", session.name(), session.peer(), reason.message);
  } else {
    log_.verbose("{}: {}", session.peer(), reason.message);
  }
  sessions_.erase(id);
  if (phase_ == Phase::training) pump();
}

// Leases go out as the round hands them out; a node that is to compute now gets the parameters first.
void Coordinator::pump() {
  if (phase_ != Phase::training) return;
  for (const Grant& grant : round_->grants(loop_.now())) {
    if (Status sent = send(grant); !sent.ok()) sessions_.at(grant.node)->close(std::move(sent).error());
  }
}

Status Coordinator::send(const Grant& grant) {
  Session& session = *sessions_.at(grant.node);
  const bool train = grant.work == Work::train;
  const bool now = !train || options_.config.mode == Mode::async || grant.step == round_->front_step();
  if (now && session.version_sent() != learner_->version()) W5XDE_CHECK(session.send_parameters(*learner_));
  // In sync the version of a step's parameters is known before they are: they are those of the step's number.
  const std::uint64_t ahead = options_.config.mode == Mode::sync && train ? grant.step - round_->front_step() : 0;
  const std::uint64_t first = train ? grant.step * options_.config.step_slots() : 0;
  return session.send_lease(grant, learner_->version() + ahead, step_seed(options_.config.seed, grant.step),
                            (train ? *batches_ : *evaluation_batches_).make(first + grant.block.first_slot,
                                                                            grant.block.slot_count));
}

// To a node that has leases of the new front step already. One that has not even taken the last version (it is
// slow, or frozen) gets the newest when it has: nothing piles up for it.
void Coordinator::send_newest(Session& session) {
  if (!session.is_ready() || session.leases_out() == 0 || session.version_sent() == learner_->version()) return;
  if (session.version_sent() != UINT64_MAX && session.connection().queued_bytes() > 0) return;
  if (Status sent = session.send_parameters(*learner_); !sent.ok()) session.close(std::move(sent).error());
}

void Coordinator::drained(Session& session) {
  if (phase_ == Phase::training && options_.config.mode == Mode::sync) send_newest(session);
}

void Coordinator::tell(Session& session, const Contribution& contribution) {
  NodeSummary& tally = session.tally;
  tally.compute_seconds += static_cast<double>(contribution.compute_ns) * 1e-9;
  tally.network_seconds += static_cast<double>(contribution.wait_ns) * 1e-9;
  tally.compression_seconds += static_cast<double>(contribution.codec_ns) * 1e-9;
}

Status Coordinator::contributed(Session& session, const Contribution& contribution, Reduction::Buffer values) {
  tell(session, contribution);
  if (phase_ != Phase::training) {
    learner_->give_back(std::move(values));
    return {};
  }
  if (contribution.samples == 0) {
    round_->answered_nothing(session.id());
    // Only void leases are answered with nothing; whoever says so of one that stands will not compute it.
    (void)round_->reject(session.id(), contribution.lease_id, contribution.block);
  } else if (!values) {
    W5XDE_CHECK(evaluation_answer(session, contribution));
  } else {
    W5XDE_CHECK(train_answer(session, contribution, std::move(values)));
  }
  advance();
  pump();
  return {};
}

bool Coordinator::too_stale(const Contribution& contribution) const {
  return options_.config.mode == Mode::async && contribution.version <= learner_->version() &&
         learner_->version() - contribution.version > kRefusedStaleness * options_.config.max_staleness;
}

Status Coordinator::train_answer(Session& session, const Contribution& contribution, Reduction::Buffer values) {
  const std::span<const float> floats(reinterpret_cast<const float*>(values->data()), learner_->floats());
  if (!std::isfinite(contribution.loss_sum) || !all_finite(floats)) {
    learner_->give_back(std::move(values));
    return bad_answer(session, contribution);
  }
  if (too_stale(contribution) && round_->reject(session.id(), contribution.lease_id, contribution.block)) {
    learner_->give_back(std::move(values));
    return {};
  }
  const double compute_seconds = static_cast<double>(contribution.compute_ns) * 1e-9;
  const auto verdict =
      round_->answer(session.id(), contribution.lease_id, contribution.block, compute_seconds, loop_.now());
  if (verdict == Round::Verdict::unknown) return corrupt("a contribution to a lease that it does not have");
  if (verdict == Round::Verdict::duplicate) {
    learner_->give_back(std::move(values));
    return {};
  }
  NodeSummary& tally = session.tally;
  const double loss = contribution.loss_sum / static_cast<double>(contribution.samples);
  if (tally.batches == 0) tally.loss.first = loss;
  tally.loss.last = loss;
  const double before = tally.batches == 0 ? 0 : tally.loss.mean * static_cast<double>(tally.batches);
  tally.batches += contribution.block.slot_count;
  tally.loss.mean = (before + loss * contribution.block.slot_count) / static_cast<double>(tally.batches);

  if (options_.config.mode == Mode::async) {
    waiting_.push_back({contribution, std::move(values)});
    return {};
  }
  return reduction_->add(contribution.block, std::move(values), {contribution.loss_sum, contribution.samples}, &pool_,
                         learner_->spare());
}

// Not a number: a broken node, or a run that has diverged. The same slots are tried once more; if they come to
// the same, it is the run.
Status Coordinator::bad_answer(Session& session, const Contribution& contribution) {
  if (!round_->reject(session.id(), contribution.lease_id, contribution.block)) return {};
  event(fmt::format("{} answered slots {}…{} of step {} with numbers that are none", session.name(),
                    contribution.block.first_slot, contribution.block.end() - 1, contribution.step));
  if (++bad_answers_[{contribution.step, contribution.block}] < 2) return {};
  fail(invalid(fmt::format("training diverged at step {}: the gradient of slots {}…{} is not finite, twice. "
                           "Lower --learning-rate or set --clip-norm, and go on from the last checkpoint",
                           contribution.step, contribution.block.first_slot, contribution.block.end() - 1)));
  return {};
}

Status Coordinator::evaluation_answer(Session& session, const Contribution& contribution) {
  const auto verdict = round_->answer(session.id(), contribution.lease_id, contribution.block,
                                      static_cast<double>(contribution.compute_ns) * 1e-9, loop_.now());
  if (verdict == Round::Verdict::unknown) return corrupt("an evaluation that nobody asked for");
  if (verdict == Round::Verdict::accepted) evaluations_[contribution.block.first_slot] = contribution;
  return {};
}

// Everything that may have become possible, in order.
void Coordinator::advance() {
  if (phase_ != Phase::training) return;
  if (evaluating_ && round_->evaluation_complete()) end_evaluation();
  if (options_.config.mode == Mode::sync) {
    while (phase_ == Phase::training && gate_open() && round_->front_complete() && !stopping_) commit_step();
  } else {
    commit_async();
  }
  if (phase_ == Phase::training) try_finish();
}

void Coordinator::commit_step() {
  Sums sums;
  Reduction::Buffer sum = reduction_->take(sums);
  const std::uint32_t slots = round_->slots_of(round_->front_step());
  const bool applied = learner_->apply(*sum, sums.samples, 1);
  learner_->give_back(std::move(sum));
  if (!applied) {
    return fail(invalid(fmt::format("training diverged at step {}: the gradient's norm is not finite. Lower "
                                    "--learning-rate or set --clip-norm, and go on from the last checkpoint",
                                    round_->front_step())));
  }
  round_->commit(loop_.now());
  reduction_.emplace(round_->slots_of(round_->front_step()), learner_->floats());
  bad_answers_.clear();
  counted_.step = round_->front_step();
  for (auto& [id, session] : sessions_) send_newest(*session);
  committed(sums.loss / static_cast<double>(sums.samples), sums.samples, slots);
  if (loop_.now() >= checkpoint_due_) write_checkpoint();
}

void Coordinator::commit_async() {
  while (gate_open() && !waiting_.empty() && phase_ == Phase::training) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const Contribution& contribution = next.contribution;
    const std::uint64_t staleness = learner_->version() - std::min(learner_->version(), contribution.version);
    const std::uint64_t max = options_.config.max_staleness;
    const double weight = staleness <= max ? 1 : static_cast<double>(max) / static_cast<double>(staleness);
    const bool applied = learner_->apply(*next.values, contribution.samples, weight);
    learner_->give_back(std::move(next.values));
    if (!applied) return fail(invalid("training diverged: the gradient's norm is not finite. Lower --learning-rate"));
    committed(contribution.loss_sum / static_cast<double>(contribution.samples), contribution.samples,
              contribution.block.slot_count);
  }
  if (!gate_open() || !waiting_.empty() || !round_->drained() || phase_ != Phase::training) return;
  counted_.step = round_->front_step();
  if (loop_.now() >= checkpoint_due_ && !stopping_) write_checkpoint();
}

void Coordinator::committed(double loss, std::uint64_t samples, std::uint32_t slots) {
  if (counted_.slots_committed == 0) counted_.loss_first = loss;
  counted_.loss_last = loss;
  counted_.loss_total += loss;
  counted_.samples_committed += samples;
  counted_.slots_committed += slots;
  counted_.evaluation_loss.reset();
  counted_.evaluation_accuracy.reset();
  batches_here_ += slots;
  row_loss_ += loss;
  ++row_.steps;
  row_.samples += samples;
  row_batches_ += slots;
  if (loop_.now() - row_since_ >= kRowEvery) record_step();
  const std::uint64_t every = options_.config.evaluate_every;
  if (every > 0 && learner_->version() % every == 0 && evaluation_batches_ && !run_over()) begin_evaluation();
}

// A row covers the steps since the last one: a thousand steps a second do not make a thousand rows.
void Coordinator::record_step() {
  if (row_batches_ == 0) return;
  const double elapsed = seconds_of(loop_.now() - row_since_);
  const double rate = static_cast<double>(row_batches_) / std::max(elapsed, 1e-9);
  batches_per_second_ = batches_per_second_ == 0 ? rate : 0.8 * batches_per_second_ + 0.2 * rate;
  row_.step = steps_done();
  row_.loss = row_loss_ / static_cast<double>(row_.steps);
  row_.learning_rate = learner_->learning_rate();
  row_.batches_per_second = rate;
  row_.nodes = static_cast<unsigned>(round_->nodes());
  row_.seconds = seconds();
  recorder_.add(row_);
  row_ = {.steps = 0};
  row_loss_ = 0;
  row_batches_ = 0;
  row_since_ = loop_.now();
}

void Coordinator::begin_evaluation() {
  evaluating_ = true;
  evaluations_.clear();
  round_->begin_evaluation(static_cast<std::uint32_t>(evaluation_batches_->sampler().slots_per_epoch()), loop_.now());
}

void Coordinator::end_evaluation() {
  // Along the tree: how the slots were cut into leases must not show.
  Reduction tree(static_cast<std::uint32_t>(evaluation_batches_->sampler().slots_per_epoch()), 0);
  std::vector<Reduction::Buffer> none;
  double correct = 0;
  for (const auto& [slot, part] : evaluations_) {
    const Sums part_sums{part.loss_sum, part.samples};
    (void)tree.add(part.block, std::make_unique<AlignedBuffer>(), part_sums, nullptr, none);
    correct += static_cast<double>(part.correct);
  }
  Sums sums;
  (void)tree.take(sums);
  const auto samples = static_cast<double>(sums.samples);
  evaluating_ = false;
  round_->end_evaluation();
  evaluated_version_ = learner_->version();
  evaluation_ = {.loss = sums.loss / samples,
                 .accuracy = material_->evaluation->classes() > 0 ? correct / samples : kUnknown};
  counted_.evaluation_loss = evaluation_->loss;
  if (!std::isnan(evaluation_->accuracy)) counted_.evaluation_accuracy = evaluation_->accuracy;
  recorder_.add(RunDatabase::EvaluationRow{.step = steps_done(),
                                           .loss = evaluation_->loss,
                                           .accuracy = evaluation_->accuracy,
                                           .samples = static_cast<std::uint64_t>(samples)});
  event(fmt::format("evaluation at step {}: loss {:.4f}, accuracy {:.4f}", steps_done(), evaluation_->loss,
                    evaluation_->accuracy));
  if (!best_loss_ || evaluation_->loss < *best_loss_) {
    best_loss_ = evaluation_->loss;
    if (options_.config.mode == Mode::sync && !run_over()) write_checkpoint();
  }
}

bool Coordinator::run_over() const {
  return round_->finished() || ((out_of_time_ || stopping_) && round_->drained());
}

void Coordinator::try_finish() {
  const bool stop_now = stopping_ && options_.config.mode == Mode::sync;
  if (!gate_open() || !waiting_.empty() || !(stop_now || run_over())) return;
  if (!stopping_ && evaluation_batches_ && evaluated_version_ != learner_->version()) {
    return begin_evaluation();
  }
  if (checkpointed_version_ != learner_->version()) return write_checkpoint();
  end(Status());
}

CheckpointInfo Coordinator::info() const {
  CheckpointInfo info = counted_;
  info.version = learner_->version();
  info.next_slot = counted_.slots_committed;
  info.seed = options_.config.seed;
  info.optimizer_steps = learner_->optimizer_steps();
  info.slots_leased_again += round_->slots_leased_again();
  info.duplicates_dropped += round_->duplicates_dropped();
  info.seconds = seconds();
  info.model = options_.config.model;
  if (!engine_.empty()) info.engine = engine_;
  if (!processor_.empty()) info.processor = processor_;
  info.model_fingerprint = learner_->model_fingerprint();
  return info;
}

void Coordinator::write_checkpoint() {
  auto blocks = learner_->blocks();
  // The last checkpoint is what a run that diverged goes on from: it must not be of what it diverged to.
  if (!std::ranges::all_of(blocks, all_finite, &CheckpointBlock::values)) {
    return fail(invalid(fmt::format("training diverged by step {}: parameters are not finite. Lower --learning-rate or "
                                    "set --clip-norm, and go on from the last checkpoint",
                                    steps_done())));
  }
  writing_ = true;
  const std::uint64_t version = learner_->version();
  const bool best = evaluated_version_ == version && best_loss_ == evaluation_->loss;
  const auto done = [this, version, alive = std::weak_ptr(alive_)](const Recorder::Written& written) {
    if (alive.expired()) return;
    writing_ = false;
    checkpoint_due_ = loop_.now() + duration_of(options_.config.checkpoint_seconds);
    checkpointed_version_ = version;
    if (!written.status.ok()) {
      return fail(Error(written.status.error()).within("writing a checkpoint; free some space and start the run again"));
    }
    event(fmt::format("checkpoint of step {}", written.step));
    if (phase_ != Phase::training) return;
    if (!out_of_time_ && !stopping_) round_->hold(false);
    advance();
    pump();
  };
  recorder_.checkpoint(info(), std::move(blocks), best, options_.config.keep, done);
}

void Coordinator::stop(const std::string& reason) {
  if (phase_ == Phase::ended || stopping_) return;
  log_.normal("{}: saving what is committed", reason);
  stopping_ = true;
  stop_asked_ = loop_.now();
  if (phase_ == Phase::waiting) return end(Status());
  round_->hold(true);
  advance();
}

void Coordinator::fail(Error error) {
  if (phase_ == Phase::ended) return;
  event(error.message);
  end(std::move(error));
}

void Coordinator::end(Status status) {
  if (round_ && phase_ == Phase::training) record_step();
  ended_ = loop_.now();
  if (on_finishing) on_finishing();
  recorder_.flush();
  phase_ = Phase::ended;
  const std::string farewell = !status.ok()   ? "the run failed: " + status.error().message
                               : stopping_ ? "the coordinator was stopped; the run can be resumed"
                                           : "the run is finished";
  for (auto& [id, session] : sessions_) session->close(disconnected(farewell));
  listener_.reset();
  outcome_ = std::move(status);
}

void Coordinator::event(const std::string& text) {
  log_.normal("{}", text);
  recorder_.add(RunDatabase::EventRow{seconds(), text});
}

double Coordinator::seconds() const {
  if (begun_ == Instant()) return seconds_before_;
  return seconds_before_ + seconds_of((phase_ == Phase::ended ? ended_ : loop_.now()) - begun_);
}

std::uint64_t Coordinator::steps_done() const {
  return options_.config.mode == Mode::sync ? counted_.step : learner_->version();
}

}  // namespace w5xde
