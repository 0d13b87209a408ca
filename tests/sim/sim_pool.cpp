#include "sim/sim_pool.h"

#include <gtest/gtest.h>

#include "learn/seeds.h"
#include "support/patience.h"
#include "wire/hello.h"

namespace w5xde {

namespace {

// A run begins with a checkpoint of step 0.
void write_first_checkpoint(const std::filesystem::path& path, std::uint64_t seed) {
  FakeEngine engine;
  const ModelDescription& model = engine.description();
  std::vector<float> state(model.floats());
  ASSERT_TRUE(engine.initialise(seed, state).ok());
  const std::span<const float> all = state;
  const std::vector<CheckpointBlock> blocks = {
      {"parameters", model.parameters.get(), all.first(model.parameters->floats())},
      {"buffers", model.buffers.get(), all.subspan(model.parameters->floats())}};
  std::filesystem::create_directories(path.parent_path());
  ASSERT_TRUE(write_checkpoint(path, {.seed = seed}, blocks).ok());
}

std::shared_ptr<const Dataset> data_of(const RunConfig& config) {
  return open_dataset(config.data, Split::train, config.seed).value();
}

}  // namespace

RunConfig sim_config() {
  RunConfig config{.model = "fake", .data = "synthetic"};
  config.batch = 24;
  config.slots = 6;
  config.steps = 30;
  config.optimizer.kind = OptimizerOptions::Kind::adam;
  config.optimizer.learning_rate = 0.03;
  config.schedule = "cosine+warmup:5";
  config.clip_norm = 2;
  config.seed = 11;
  return config;
}

std::string plain_hash(const RunConfig& config) {
  const TemporaryFolder folder;
  write_first_checkpoint(folder / "first.safetensors", config.seed);
  const auto checkpoint = CheckpointFile::open(folder / "first.safetensors").value();
  const auto data = data_of(config);
  Batches batches(data, {.samples = data->samples(), .batch = config.batch, .seed = config.seed});
  const auto learner = Learner::from(checkpoint,
                                     {.optimizer = config.optimizer,
                                      .schedule = parse_schedule(config.schedule, config.steps).value(),
                                      .clip_norm = config.clip_norm},
                                     nullptr)
                           .value();
  FakeEngine engine;
  GlobalBatch growing({config.growth, config.batch, config.slots, config.optimizer}, {});
  std::uint32_t slots = config.slots;
  std::uint64_t next_slot = 0;
  for (std::uint64_t step = 0; step < config.steps; ++step) {
    for (const BatchGrowth& growth : growing.growths()) {
      if (growth.step == step) slots = growing.slots_of(growth);
    }
    learner->set_pace({.schedule_step = step, .factor = growing.rate_factor(slots)});
    Reduction reduction(slots, learner->floats(), [&](const HalfSum& left, const HalfSum& right) {
      growing.measure(left, right, learner->parameters()->floats(), nullptr);
    });
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      const auto batch = batches.make(next_slot++, 1);
      auto buffer = learner->take_buffer();
      const std::span<float> values(reinterpret_cast<float*>(buffer->data()), learner->floats());
      const std::span<const float> state(reinterpret_cast<const float*>(learner->state()->data()),
                                         learner->floats());
      const auto sums = engine.compute(state, {batch.payload[0], batch.payload[1]},
                                       slot_seed(step_seed(config.seed, step), slot), values);
      EXPECT_TRUE(reduction.add({slot, 1}, std::move(buffer), *sums, nullptr, learner->spare()).ok());
    }
    Sums sums;
    const auto sum = reduction.take(sums);
    EXPECT_TRUE(learner->apply(*sum, sums.samples, 1));
    if (config.growth.grows()) growing.committed(step);
  }
  return learner->parameters_hash();
}

Summary run_to_end(const RunConfig& config, unsigned nodes) {
  SimPool pool(config);
  pool.add_nodes(nodes);
  EXPECT_EQ(pool.run(), "ok");
  Summary summary = pool.coordinator().summary();
  EXPECT_TRUE(summary.audit.passed());
  return summary;
}

struct SimPool::Member {
  std::string name;
  NodeShape shape;
  std::unique_ptr<Link> link;
  std::unique_ptr<Node> node;
  bool connecting = false;
};

SimPool::SimPool(const RunConfig& config) : config_(config) {
  const RunFolder folder = RunFolder::open(folder_ / "run").value();
  write_first_checkpoint(folder.checkpoint_path(0), config.seed);
}

SimPool::~SimPool() {
  members_.clear();
  coordinator_.reset();
}

void SimPool::add_node(NodeShape shape) {
  auto& member = *members_.emplace_back(std::make_unique<Member>());
  member.name = "node-" + std::to_string(members_.size());
  member.shape = std::move(shape);
}

void SimPool::add_nodes(unsigned count) {
  for (unsigned i = 0; i < count; ++i) add_node({});
}

void SimPool::start_coordinator(unsigned nodes_awaited) {
  RunFolder folder = RunFolder::open(folder_ / "run").value();
  auto checkpoint = std::move(folder.newest()).value();
  ASSERT_TRUE(checkpoint.has_value());
  const Address address{"127.0.0.1", address_.port};
  coordinator_ =
      Coordinator::listen(
          loop_, {.run = "sim", .config = config_, .listen = address, .nodes_awaited = nodes_awaited},
          std::move(folder), log_)
          .value();
  address_ = coordinator_->address();
  ASSERT_TRUE(coordinator_
                  ->begin({.checkpoint = std::move(*checkpoint),
                           .data = data_of(config_),
                           .evaluation = evaluation_,
                           .loss = "mse"})
                  .ok());
}

void SimPool::start(unsigned more) {
  start_coordinator(static_cast<unsigned>(members_.size()) + more);
}

void SimPool::restart_coordinator() {
  coordinator_.reset();
  start_coordinator(1);
}

bool SimPool::kill_node(std::size_t number) {
  return std::exchange(members_[number]->node, nullptr) != nullptr;
}

void SimPool::connect(Member& member) {
  member.connecting = true;
  if (member.shape.link && !member.link) {
    member.link = Link::start(loop_, address_, *member.shape.link, member.shape.seed).value();
  }
  const Address address = member.link ? member.link->address() : address_;
  connect_tcp(loop_, {.address = address, .attempts_max = 1}, random_,
              [this, &member](Result<std::unique_ptr<Stream>> stream) {
                member.connecting = false;
                if (!stream.ok()) return;
                ++stays_;
                NodeOptions options{.name = member.name, .machine = member.shape.machine};
                options.make_engine = [&member](const ModelOptions&, const std::filesystem::path&) {
                  return Result<std::unique_ptr<Engine>>(std::make_unique<FakeEngine>(member.shape.touch));
                };
                member.node = std::make_unique<Node>(loop_, std::move(options), log_);
                member.node->start(std::move(*stream));
              });
}

void SimPool::tend() {
  if (coordinator_->outcome()) return;
  for (auto& member : members_) {
    if (member->node && member->node->ended()) member->node.reset();
    if (!member->node && !member->connecting) connect(*member);
  }
}

bool SimPool::run_until(const std::function<bool()>& condition) {
  return w5xde::run_until(loop_, [&] {
    if (on_turn) on_turn();
    tend();
    return condition();
  });
}

std::string SimPool::run() {
  if (!coordinator_) start();
  if (!run_until([&] { return coordinator_->outcome().has_value(); })) return "did not end";
  const Status& outcome = *coordinator_->outcome();
  return outcome.ok() ? "ok" : outcome.error().to_string();
}

std::unique_ptr<Stream> SimPool::connect_stream() {
  std::unique_ptr<Stream> stream;
  connect_tcp(loop_, {.address = address_, .attempts_max = 1}, random_,
              [&](Result<std::unique_ptr<Stream>> connected) {
                if (connected.ok()) stream = std::move(*connected);
              });
  EXPECT_TRUE(run_until([&] { return stream != nullptr; }));
  return stream;
}

std::unique_ptr<HandPeer> SimPool::connect_by_hand() {
  return std::make_unique<HandPeer>(connect_stream());
}

std::unique_ptr<HandPeer> SimPool::enrol_by_hand(const std::string& name) {
  auto peer = connect_by_hand();
  peer->say(FrameType::hello, Hello{.name = name});
  EXPECT_TRUE(run_until([&] { return peer->count(FrameType::offer) > 0; }));
  const Offer offer = decode_offer(peer->take(FrameType::offer)->head, Limits{}).value();
  peer->say(FrameType::ready, Ready{.model_fingerprint = offer.model_fingerprint, .engine = "hand"});
  return peer;
}

CheckpointFile SimPool::newest_checkpoint() {
  coordinator_.reset();
  const RunFolder folder = RunFolder::open(folder_ / "run").value();
  return *std::move(folder.newest()).value();
}

std::uint64_t SimPool::bits_flipped() const {
  std::uint64_t bits = 0;
  for (const auto& member : members_) bits += member->link ? member->link->bits_flipped() : 0;
  return bits;
}

}  // namespace w5xde
