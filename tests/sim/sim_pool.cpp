#include "sim/sim_pool.h"

#include <gtest/gtest.h>

#include "net/tcp.h"
#include "sim/plain_run.h"
#include "support/patience.h"
#include "wire/hello.h"

namespace w5xde {

namespace {

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
  config.schedule = parse_schedule("cosine+warmup:5", 1).value();
  config.clip_norm = 2;
  config.seed = 11;
  return config;
}

std::string plain_hash(const RunConfig& config) {
  const TemporaryFolder folder;
  const auto path = folder / "first.safetensors";
  EXPECT_TRUE(write_first_checkpoint(path, config.seed, real_disk()).ok());
  return plain_hash(config, data_of(config), CheckpointFile::open(path).value());
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
  bool comes_back = true;
};

SimPool::SimPool(const RunConfig& config) : config_(config) {
  const RunFolder folder = RunFolder::open(folder_ / "run").value();
  EXPECT_TRUE(write_first_checkpoint(folder.checkpoint_path(0), config.seed, real_disk()).ok());
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
  const Listen listen = [&](Listener::Accepted accepted) -> Result<std::unique_ptr<Listener>> {
    W5XDE_TRY(std::unique_ptr<Listener> listener, listen_tcp(loop_, address, {}, std::move(accepted)));
    return listener;
  };
  coordinator_ = Coordinator::start(loop_, listen,
                                    {.run = "sim",
                                     .config = config_,
                                     .nodes_awaited = nodes_awaited,
                                     .shared_bytes_min = shared_bytes_min_,
                                     .checkpoint_retry = std::chrono::milliseconds(1)},
                                    std::move(folder), log_)
                     .value();
  address_ = coordinator_->address();
  ASSERT_TRUE(coordinator_
                  ->begin({.checkpoint = std::move(*checkpoint),
                           .data = data_ ? data_ : data_of(config_),
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

void SimPool::kill_nodes_for_good() {
  for (auto& member : members_) {
    member->node.reset();
    member->comes_back = false;
  }
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
                if (!stream.ok() || !member.comes_back) return;
                ++stays_;
                NodeOptions options{.name = member.name, .machine = member.shape.machine};
                options.make_engine = [&member](const ModelOptions&, const std::filesystem::path&) {
                  auto engine = std::make_unique<FakeEngine>(member.shape.touch);
                  engine->touch_evaluation = member.shape.touch_evaluation;
                  return Result<std::unique_ptr<Engine>>(std::move(engine));
                };
                member.node = std::make_unique<Node>(loop_, std::move(options), log_);
                member.node->start(std::move(*stream));
              });
}

void SimPool::tend() {
  if (coordinator_->outcome()) return;
  for (auto& member : members_) {
    if (member->node && member->node->ended()) member->node.reset();
    if (!member->node && !member->connecting && member->comes_back) connect(*member);
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
