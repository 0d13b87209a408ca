#include "sim/simulation.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <tuple>

#include "data/windows.h"
#include "sim/plain_run.h"
#include "support/fake_engine.h"

namespace w5xde {

namespace {

constexpr auto kRunPath = "/run";
// However it went before, a pool that nothing happens to any more is done by then.
constexpr Duration kPatience = std::chrono::minutes(15);
// So much happens in no honest run.
constexpr std::uint64_t kEventsMax = 1'000'000;
constexpr Duration kPartingPatience = std::chrono::minutes(2);
constexpr std::size_t kMembersMax = 8;
constexpr unsigned kStaysOfLiarsMax = 4;

// What a node has computed so far, added to the time.
class CpuClock final : public Clock {
 public:
  explicit CpuClock(const SimProcess& process) : process_(process) {}
  Instant now() const override { return process_.now() + spent(); }
  void spend(Duration duration) { spent_ += duration.count(); }
  Duration spent() const { return Duration(spent_); }

 private:
  const SimProcess& process_;
  std::atomic<Duration::rep> spent_ = 0;  // lanes are threads
};

// A thousand windows of 16 ids to train on, as many samples as `synthetic` has. Ids are u16, and travel as
// i32.
std::shared_ptr<const Dataset> make_tokens(Split split, std::uint64_t seed) {
  constexpr std::size_t kIds = 17'785;
  constexpr std::uint32_t kVocabulary = 500, kContext = 16;
  const auto ids = std::make_shared<std::vector<std::uint16_t>>(kIds);
  Random random(seed);
  for (std::uint16_t& id : *ids) id = static_cast<std::uint16_t>(random.below(kVocabulary));
  return make_windows({.name = "tokens",
                       .type = IdRow::Type::u16,
                       .bytes = std::as_bytes(std::span(*ids)),
                       .owner = ids,
                       .vocabulary = kVocabulary},
                      kContext, split)
      .value();
}

}  // namespace

// A machine that joins, and joins again.
struct Simulation::Member {
  Member(SimTime& time, NodePlan p, std::uint64_t seed)
      : plan(std::move(p)), process(time, plan.name, seed), clock(process) {
    process.work_done = [this] { return clock.spent() - std::exchange(reported, clock.spent()); };
  }

  NodePlan plan;
  SimProcess process;
  CpuClock clock;
  Duration reported = Duration::zero();  // of what was computed
  std::weak_ptr<SimLink> link;
  std::unique_ptr<Node> node;
  bool connecting = false;
  unsigned stays = 0;
  bool sent_away = false;
};

class Simulation::SimListener final : public Listener {
 public:
  explicit SimListener(Simulation& world) : world_(world) {}
  ~SimListener() override { world_.accept_ = nullptr; }
  const Address& address() const override { return address_; }

 private:
  Simulation& world_;
  Address address_{"coordinator", 1};
};

Simulation::Simulation(std::uint64_t seed, SimTrace trace)
    : seed_(seed),
      scenario_(make_scenario(seed)),
      random_(mix(seed, 1)),
      trace_(std::move(trace)),
      disk_(mix(seed, 2)),
      faults_left_(scenario_.faults) {
  disk_.on_change = [this](const std::string& operation) {
    this->trace("disk: " + operation);
    if (writes_until_crash_ > 0 && --writes_until_crash_ == 0) disk_.freeze();
  };
}

Simulation::~Simulation() {
  for (auto& member : members_) member->node.reset();
  coordinator_.reset();
  process_.reset();
  members_.clear();
}

void Simulation::trace(const std::string& line) {
  if (trace_) trace_(fmt::format("{:.6f} {}", seconds_of(time_.now().time_since_epoch()) - 3600, line));
}

void Simulation::violated(std::string what) {
  if (violation_.empty()) violation_ = std::move(what);
}

std::shared_ptr<const Dataset> Simulation::data(Split split) const {
  // The same for every run with this seed, and costly to make.
  thread_local std::map<std::tuple<std::uint64_t, Split, bool>, std::shared_ptr<const Dataset>> made;
  const std::uint64_t seed = scenario_.config.seed;
  auto& set = made[{seed, split, scenario_.tokens}];
  if (!set)
    set = scenario_.tokens ? make_tokens(split, seed)
                           : open_dataset(scenario_.config.data, split, seed).value();
  return set;
}

std::string Simulation::run() {
  trace(scenario_.describe());
  const std::filesystem::path first =
      std::filesystem::path(kRunPath) / "checkpoints/step-000000000.safetensors";
  if (!write_first_checkpoint(first, scenario_.config.seed, disk_).ok()) return "no first checkpoint";
  for (const NodePlan& plan : scenario_.nodes) add_member(plan);
  last_fault_ = time_.now();
  start_coordinator();
  if (faults_left_ > 0) next_fault();
  while (!finished_ && violation_.empty()) {
    if (!time_.step()) violated("nothing happens any more, and the run is not over");
    if (disk_.frozen()) {
      trace("the coordinator is gone in the middle of a write");
      lose_coordinator();
      start_coordinator_later();
    }
    if (coordinator_) {
      if (const auto books = coordinator_->check_books(); !books.ok()) violated(books.error().message);
    }
    tend();
    look_at_outcome();
    if (time_.now() > last_fault_ + kPatience) violated("the run does not end");
    if (time_.events_run() > kEventsMax) violated("the pool is busy without end");
  }
  if (violation_.empty()) check_result();
  return violation_;
}

// ---- the coordinator

Listen Simulation::listening() {
  return [this](Listener::Accepted accepted) -> Result<std::unique_ptr<Listener>> {
    accept_ = std::move(accepted);
    return std::unique_ptr<Listener>(std::make_unique<SimListener>(*this));
  };
}

void Simulation::start_coordinator() {
  trace("the coordinator starts");
  disk_.revive();
  process_ = std::make_unique<SimProcess>(time_, "coordinator", random_.next());
  process_->work_begins = [this] {
    const double most = time_.now() < disk_slow_until_ ? 3 : 0.002;
    return duration_of(most * process_->random().unit());
  };
  auto folder = RunFolder::open(kRunPath, disk_);
  if (!folder.ok()) return violated("the run's folder cannot be opened: " + folder.error().message);
  auto checkpoint = folder->newest();
  if (!checkpoint.ok() || !*checkpoint)
    return violated(checkpoint.ok() ? "no checkpoint is left" : checkpoint.error().message);
  trace(fmt::format("it goes on from step {}", (*checkpoint)->info().step));
  auto started = Coordinator::start(*process_, listening(),
                                    {.run = "sim",
                                     .config = scenario_.config,
                                     .nodes_awaited = 1,
                                     .inline_floats = scenario_.large ? 8 : Coordinator::kInlineFloats,
                                     .shared_bytes_min = scenario_.shares_memory ? 0 : kSharedBytesMin,
                                     .database = Recorder::Database::none},
                                    *folder, log_);
  coordinator_ = std::move(started).value();
  const Status begun = coordinator_->begin({.checkpoint = std::move(**checkpoint),
                                            .data = data(Split::train),
                                            .evaluation = scenario_.evaluates ? data(Split::test) : nullptr,
                                            .loss = "mse"});
  if (!begun.ok()) violated("the run cannot begin: " + begun.error().message);
}

void Simulation::lose_coordinator() {
  if (power_lost_) {
    for (auto& member : members_) {
      if (const auto link = member->link.lock()) link->set_silent();
    }
  }
  disk_.freeze();
  coordinator_.reset();
  process_.reset();
  writes_until_crash_ = 0;
  disk_.revive();
  if (std::exchange(power_lost_, false)) disk_.lose_power();
}

void Simulation::start_coordinator_later() {
  time_.at(time_.now() + seconds_up_to(1), nullptr, [this] { start_coordinator(); });
}

void Simulation::look_at_outcome() {
  if (!coordinator_ || !coordinator_->outcome() || finished_) return;
  const Status& outcome = *coordinator_->outcome();
  if (outcome.ok() && !coordinator_->stopped_early()) return finish();
  if (!outcome.ok()) {
    trace("the run ends: " + outcome.error().to_string());
    // Somebody makes room on the disk, sends nodes away that only say NaN, and starts it again.
    if (outcome.error().kind != ErrorKind::system && !send_liars_away())
      return violated("the run ends: " + outcome.error().message);
    disk_.set_full(false);
    disk_.fail_syncs(0);
  }
  lose_coordinator();
  start_coordinator_later();
}

void Simulation::finish() {
  finished_ = true;
  const Summary summary = coordinator_->summary();
  trace("the run is finished: " + summary.parameters_hash);
  hash_ = summary.parameters_hash;
  feedback_lost_ = summary.audit.feedback_lost > 0;
  if (!summary.audit.passed()) {
    violated(fmt::format("the audit: {} samples expected, {} committed", summary.audit.samples_expected,
                         summary.audit.samples_committed));
  }
  const Instant patience = time_.now() + kPartingPatience;
  while (!coordinator_->nodes_gone() && time_.now() < patience && time_.step()) {
  }
  if (!coordinator_->nodes_gone()) violated("sessions are left when the run is over");
}

void Simulation::check_result() {
  const RunConfig& config = scenario_.config;
  coordinator_.reset();
  process_.reset();
  disk_.lose_power();
  const auto newest = RunFolder::open(kRunPath, disk_)->newest();
  if (!newest.ok() || !*newest) return violated("the finished run has no checkpoint");
  const CheckpointInfo& info = (*newest)->info();
  const Sampler sampler(
      {.samples = data(Split::train)->samples(), .batch = config.batch, .seed = config.seed});
  const std::uint64_t slots_total = config.slots_total(sampler.slots_per_epoch());
  const std::uint64_t slots = slots_total > 0 ? slots_total : config.steps * config.step_slots();
  if (info.slots_committed != slots || info.next_slot != slots)
    return violated(fmt::format("{} slots are committed, the cursor is at {}, and the run has {}",
                                info.slots_committed, info.next_slot, slots));
  if (info.samples_committed != sampler.samples_before(slots))
    return violated(
        fmt::format("{} samples are committed of {}", info.samples_committed, sampler.samples_before(slots)));
  if (scenario_.feeds_back) return check_feedback(**newest);
  if (config.mode == Mode::async) return;
  SimDisk fresh(0);
  (void)write_first_checkpoint("/first", config.seed, fresh);
  const std::string expected =
      plain_hash(config, data(Split::train), CheckpointFile::open("/first", fresh).value());
  if (*hash_ != expected)
    violated(fmt::format("the parameters are {}, a plain loop's are {}", *hash_, expected));
}

// Parameters at the beginning - rate / samples of a step × (all gradients - what is still to be said) are the
// parameters at the end.
void Simulation::check_feedback(const CheckpointFile& checkpoint) {
  if (feedback_lost_) return;
  const RunConfig& config = scenario_.config;
  FakeEngine engine;
  const BlockLayout& layout = *engine.description().parameters;
  std::vector<float> begun(engine.description().floats()), ended(layout.floats()), left(layout.floats());
  (void)engine.initialise(config.seed, begun);
  if (!checkpoint.read("parameters", layout, ended).ok()) return violated("no parameters in the checkpoint");
  if (checkpoint.layout_of("feedback")) (void)checkpoint.read("feedback", layout, left);
  const auto sum = sum_of_gradients(config, data(Split::train));
  const double rate =
      config.optimizer.learning_rate / static_cast<double>(std::uint64_t{config.batch} * config.step_slots());
  for (std::size_t i = 0; i < layout.floats(); ++i) {
    const double expected = double{begun[i]} - rate * (sum[i] - double{left[i]});
    if (std::abs(expected - double{ended[i]}) > 1e-5 * (1 + std::abs(expected)))
      return violated(fmt::format("parameter {} is {}, and {} where nothing is lost", i, ended[i], expected));
  }
}

// ---- the nodes

void Simulation::add_member(NodePlan plan) {
  members_.push_back(std::make_unique<Member>(time_, std::move(plan), random_.next()));
  connect_later(*members_.back());
}

void Simulation::connect_later(Member& member) {
  if (std::exchange(member.connecting, true)) return;
  time_.at(time_.now() + seconds_up_to(member.stays == 0 ? 0.01 : 1), nullptr, [this, &member] {
    member.connecting = false;
    connect(member);
  });
}

void Simulation::connect(Member& member) {
  if (member.node || finished_) return;
  if (member.plan.hostility != Hostility::none && member.stays >= kStaysOfLiarsMax) return;
  if (!accept_) return connect_later(member);
  const auto link = SimLink::make(time_, member.plan.link, random_.next(),
                                  [this](const std::string& line) { trace(line); });
  member.link = link;
  ++member.stays;
  auto [near, far] = link->ends(member.process, *process_);
  const auto arriving = std::make_shared<std::unique_ptr<Stream>>(std::move(far));
  time_.at(time_.now() + member.plan.link.latency, process_.get(), [this, arriving] {
    if (accept_) accept_(std::move(*arriving));
  });
  NodeOptions options{.name = member.plan.name, .machine = member.plan.machine};
  options.clock = &member.clock;
  const auto gradient = scenario_.feeds_back ? FakeEngine::Gradient::constant : FakeEngine::Gradient::drawn;
  options.make_engine = [&member, gradient](const ModelOptions&, const std::filesystem::path&) {
    const auto spend = [&member](std::uint64_t, std::span<float>) -> Status {
      member.clock.spend(duration_of(member.plan.slot_seconds));
      return {};
    };
    return Result<std::unique_ptr<Engine>>(std::make_unique<FakeEngine>(spend, gradient));
  };
  member.node = std::make_unique<Node>(member.process, std::move(options), log_);
  member.node->start(make_hostile(std::move(near), member.plan.hostility));
}

void Simulation::lose_node(Member& member) {
  member.node.reset();
  time_.forget(&member.process);
  connect_later(member);
}

bool Simulation::send_liars_away() {
  bool found = false;
  for (auto& member : members_) {
    if (member->plan.hostility != Hostility::not_finite) continue;
    found = found || !member->sent_away;
    member->sent_away = true;
    member->stays = kStaysOfLiarsMax;
  }
  return found;
}

void Simulation::tend() {
  for (auto& member : members_) {
    if (!member->node || !member->node->ended()) continue;
    trace(fmt::format("{} is out: {}", member->plan.name, member->node->ended()->to_string()));
    member->node.reset();
    // Who lies gives up at some time.
    if (member->plan.hostility == Hostility::none || member->stays < kStaysOfLiarsMax) connect_later(*member);
  }
}

// ---- what goes wrong

void Simulation::next_fault() {
  const Duration wait = duration_of(2 * scenario_.fault_seconds * unit());
  time_.at(time_.now() + wait, nullptr, [this] {
    if (finished_) return;
    const Fault fault = scenario_.kinds[random_.below(scenario_.kinds.size())];
    trace(fmt::format("fault: {}", name_of(fault)));
    last_fault_ = time_.now();
    happen(fault);
    if (--faults_left_ > 0) return next_fault();
    disk_.set_full(false);
  });
}

Simulation::Member* Simulation::any_member() {
  return members_[random_.below(members_.size())].get();
}

void Simulation::happen(Fault fault) {
  Member& member = *any_member();
  const auto link = member.link.lock();
  switch (fault) {
    case Fault::lose_node_power:
      if (link) link->set_silent();
      return lose_node(member);
    case Fault::kill_node:
      return lose_node(member);
    case Fault::leave_node:
      if (member.node) member.node->leave("the node was told to stop");
      return;
    case Fault::join_node:
    case Fault::join_hostile: {
      if (members_.size() >= kMembersMax) return;
      NodePlan plan = make_node(random_, members_.size() + 1);
      if (fault == Fault::join_hostile) {
        plan.hostility = static_cast<Hostility>(1 + random_.below(static_cast<int>(Hostility::count_) - 1));
        trace(fmt::format("{} {}", plan.name, name_of(plan.hostility)));
      }
      return add_member(std::move(plan));
    }
    case Fault::freeze_node:
      return member.process.freeze_until(time_.now() + seconds_up_to(6));
    case Fault::jump_node_clock:
      return member.process.jump(seconds_up_to(20));
    case Fault::block_link:
    case Fault::cut_link:
    case Fault::flip_bit:
    case Fault::slow_link:
      if (link) happen_to_link(fault, *link);
      return;
    case Fault::fill_disk:
    case Fault::fail_sync:
    case Fault::slow_disk:
      return happen_to_disk(fault);
    default:
      if (coordinator_) happen_to_coordinator(fault);
  }
}

void Simulation::happen_to_link(Fault fault, SimLink& link) {
  const auto way = static_cast<SimLink::Way>(random_.below(3));
  switch (fault) {
    case Fault::block_link:
      return link.block(way, time_.now() + seconds_up_to(random_.below(2) == 0 ? 0.2 : 8));
    case Fault::cut_link:
      return link.cut();
    case Fault::flip_bit:
      return link.flip_bit(way);
    default:
      return link.set_rate(way, 2000 + 20000 * unit());
  }
}

void Simulation::happen_to_disk(Fault fault) {
  switch (fault) {
    case Fault::fill_disk:
      disk_.set_full(true);
      time_.at(time_.now() + seconds_up_to(5), nullptr, [this] { disk_.set_full(false); });
      return;
    case Fault::fail_sync:
      return disk_.fail_syncs(1 + static_cast<unsigned>(random_.below(3)));
    default:
      disk_slow_until_ = time_.now() + seconds_up_to(5);
  }
}

void Simulation::happen_to_coordinator(Fault fault) {
  switch (fault) {
    case Fault::stop_coordinator:
      return coordinator_->stop("told to");
    case Fault::freeze_coordinator:
      return process_->freeze_until(time_.now() + seconds_up_to(6));
    case Fault::jump_coordinator_clock:
      return process_->jump(seconds_up_to(20));
    case Fault::kill_coordinator_while_writing:
      writes_until_crash_ = 1 + static_cast<unsigned>(random_.below(12));
      power_lost_ = random_.below(2) == 0;
      return;
    case Fault::lose_coordinator_power:
      power_lost_ = true;
      [[fallthrough]];
    default:
      lose_coordinator();
      start_coordinator_later();
  }
}

}  // namespace w5xde
