#include "support/node_world.h"

#include "learn/engine_library.h"
#include "node/computation.h"
#include "support/memory_stream.h"
#include "support/patience.h"
#include "wire/hello.h"

namespace w5xde {

NodeWorld::NodeWorld() {
  options.name = "desk";
  options.model_cache = folder / "models";
  options.make_engine = [this](const ModelOptions& made,
                               const std::filesystem::path& file) -> Result<std::unique_ptr<Engine>> {
    engine_s_file = file;
    model = made;
    ++engines_made;
    return std::unique_ptr<Engine>(std::make_unique<FakeEngine>(touch));
  };
}

NodeWorld::~NodeWorld() {
  node.reset();
  peer.reset();
}

void NodeWorld::start() {
  auto [near, far] = make_memory_streams(loop, 64 * 1024);
  node = std::make_unique<Node>(loop, options, log);
  node->start(std::move(near));
  peer = std::make_unique<HandPeer>(std::move(far));
}

Offer NodeWorld::offer() const {
  return {.run = "test",
          .model = "fake",
          .loss = "mse",
          .inputs = {{.name = "inputs", .shape = {3}}},
          .targets = {.name = "targets", .dtype = DType::u8, .shape = {}},
          .classes = 10,
          .model_fingerprint = fingerprint_of(FakeEngine().description())};
}

void NodeWorld::enrol(const Offer& offer) {
  start();
  peer->say(FrameType::hello, Hello{.role = "coordinator"});
  peer->say(FrameType::offer, offer);
  (void)hear(FrameType::ready);
}

bool NodeWorld::run_until(const std::function<bool()>& condition) {
  return w5xde::run_until(loop, condition);
}

std::optional<ReceivedFrame> NodeWorld::hear(FrameType type) {
  (void)run_until([&] { return peer->count(type) > 0 || peer->closed(); });
  return peer->take(type);
}

std::optional<Contribution> NodeWorld::hear_contribution() {
  const auto frame = hear(FrameType::contribution);
  if (!frame) return std::nullopt;
  return decode_contribution(frame->head, Limits{}).value();
}

std::string NodeWorld::ending() {
  (void)run_until([&] { return node->ended().has_value(); });
  return node->ended() ? node->ended()->to_string() : "still there";
}

std::vector<float> NodeWorld::state_of(std::uint64_t version) const {
  FakeEngine engine;
  std::vector<float> state(engine.description().floats());
  (void)engine.initialise(version + 100, state);
  return state;
}

void NodeWorld::say_parameters(std::uint64_t version, std::uint64_t first, std::uint64_t count) {
  const auto state = state_of(version);
  peer->say(FrameType::parameters,
            Parameters{.version = version,
                       .first_float = first,
                       .floats_total = state.size(),
                       .tensors = {{DType::f32, Shape{static_cast<std::int64_t>(count)}}}},
            std::as_bytes(std::span(state).subspan(first, count)));
}

std::vector<std::byte> NodeWorld::expected(const SampledLease& made, std::uint64_t version) const {
  FakeEngine engine;
  const SteadyClock clock;
  Computation computation(engine, clock);
  const auto state = state_of(version);
  const Computed computed = computation.run(made.lease, made.payload, state).value();
  return {computed.values->data(), computed.values->data() + state.size() * sizeof(float)};
}

}  // namespace w5xde
