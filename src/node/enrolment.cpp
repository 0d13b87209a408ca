// How a node comes in: from hello to ready.
#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/hash.h"
#include "node/node.h"
#include "w5xde/version.h"
#include "wire/hello.h"

namespace w5xde {

namespace {

// A model of which not even two versions, a gradient and a sum fit cannot be computed here.
constexpr std::uint64_t kModelBlocksMin = 4;
// Of the samples that an engine is warmed up with; models of larger ones start cold.
constexpr std::uint64_t kWarmUpBytesMax = 64 * kMiB;

}  // namespace

Status Node::received_hello(Bytes head) {
  W5XDE_TRY(const Hello theirs, decode_hello(head, Limits::stranger()));
  const Hello mine{.software = "w5xde " + std::string(kVersion), .name = options_.name};
  W5XDE_TRY(const std::uint32_t protocol, negotiate(mine, theirs, {connection_->stream().encrypted()}));
  log_.verbose("{} is {}, protocol {}", connection_->stream().peer(), theirs.software, protocol);
  // A coordinator is trusted with the model and its batches; how large those may be is the node's memory.
  limits_ = Limits{};
  connection_->set_limits(limits_);
  return {};
}

// What would size memory here.
Status Node::check_offer() const {
  W5XDE_TRY(const Shape sample, Shape::make(offer_.sample_shape));
  if (sample.elements() <= limits_.sample_bytes_max / sizeof(float)) return {};
  return overloaded(fmt::format("the run's samples are {}; at most {} numbers each", sample.to_string(),
                                limits_.sample_bytes_max / sizeof(float)));
}

Status Node::received_offer(Bytes head) {
  // A lease of the first may be computing with its engine.
  if (std::exchange(offered_, true)) return corrupt("a second offer");
  W5XDE_TRY(offer_, decode_offer(head, limits_));
  W5XDE_CHECK(check_offer());
  if (offer_.threads != options_.threads) {
    return incompatible(fmt::format("this run computes a slot with {} threads; join with --threads {}",
                                    offer_.threads, offer_.threads));
  }
  connection_->tune({.quick_ack = offer_.quick_ack,
                     .keep_alive = offer_.keep_alive,
                     .send_buffer_bytes = offer_.socket_buffer,
                     .receive_buffer_bytes = offer_.socket_buffer,
                     .receive_chunk_bytes = offer_.receive_chunk,
                     .combined_send = offer_.combined_send});
  if (offer_.model_hash.empty()) return load([] { return std::filesystem::path(); });
  const auto file = options_.model_cache / (offer_.model_hash + ".pt");
  const auto is_cached = std::make_shared<bool>(false);
  background_->run(
      [file, is_cached, hash = offer_.model_hash] {
        const auto cached = MappedFile::open(file);
        *is_cached = cached.ok() && hash128_hex(cached->bytes()) == hash;
      },
      [this, file, is_cached] {
        Status status =
            *is_cached ? load([file] { return Result<std::filesystem::path>(file); }) : ask_for_model();
        if (!status.ok()) connection_->close(std::move(status).error());
      });
  return {};
}

Status Node::ask_for_model() {
  const std::uint64_t bytes_max = std::min(limits_.model_file_bytes_max, options_.machine.memory_bytes / 2);
  if (offer_.model_bytes == 0 || offer_.model_bytes > bytes_max)
    return overloaded(fmt::format("the run's model has {} bytes; at most {}", offer_.model_bytes, bytes_max));
  Head request;
  encode(ModelPart{}, request);
  return send_cold(FrameType::model, request);
}

Result<MutableBytes> Node::place_model(const FrameHeader& header, Bytes head) {
  W5XDE_TRY(const ModelPart part, decode_model_part(head, limits_));
  if (part.offset != model_received_ || part.bytes > offer_.model_bytes - model_received_ ||
      header.payload_bytes != part.bytes || engine_ != nullptr || header.codec != 0) {
    return corrupt("a part of the model's file that was not asked for");
  }
  model_bytes_.resize(model_received_ + part.bytes);
  const MutableBytes place(model_bytes_.data() + model_received_, part.bytes);
  model_received_ += part.bytes;
  return place;
}

Status Node::received_model() {
  if (model_received_ < offer_.model_bytes) return {};
  const auto bytes = std::make_shared<std::vector<std::byte>>(std::exchange(model_bytes_, {}));
  return load([bytes, announced = offer_.model_hash,
               cache = options_.model_cache]() -> Result<std::filesystem::path> {
    const std::string hash = hash128_hex(*bytes);
    if (hash != announced) {
      return corrupt(fmt::format("the model's file came with hash {}, {} was announced", hash, announced));
    }
    std::error_code ignored;  // what matters is whether the file can be written
    std::filesystem::create_directories(cache, ignored);
    const auto file = cache / (hash + ".pt");
    const Bytes part = *bytes;
    W5XDE_CHECK(write_file_atomically(file, {&part, 1}));
    return file;
  });
}

Ready Node::about_this(std::uint64_t fingerprint) const {
  Ready ready{.model_fingerprint = fingerprint,
              .engine = engine_->name(),
              .processor = processor_name(),
              .sample_cache_bytes = options_.sample_cache_bytes};
  if (engine_->uses_cores()) {
    ready.machine = options_.machine.id;
    ready.lanes = std::max(1u, options_.machine.cores / std::max(1u, options_.threads));
  }
  return ready;
}

// A slot with more threads than one has the cores already, and a device that is no processor none.
std::uint32_t Node::lanes_at_most() const {
  if (!engine_->uses_cores() || offer_.threads > 1) return 1;
  const std::uint64_t lane_bytes = Limits::kLaneBlocks * engine_->description().floats() * sizeof(float);
  const std::uint64_t with_memory =
      options_.machine.memory_bytes / 2 / std::max<std::uint64_t>(1, lane_bytes);
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, std::min<std::uint64_t>(with_memory, options_.machine.cores)));
}

Status Node::load(std::function<Result<std::filesystem::path>()> find_file) {
  W5XDE_TRY(const Shape sample_shape, Shape::make(offer_.sample_shape));
  const ModelOptions model{.model = offer_.model,
                           .loss = offer_.loss,
                           .sample_shape = sample_shape,
                           .classes = offer_.classes,
                           .threads = offer_.threads,
                           .device = options_.device,
                           .floats_max = options_.machine.memory_bytes / (kModelBlocksMin * sizeof(float))};
  const auto loaded = std::make_shared<Loaded>();
  background_->run([this, model, find_file = std::move(find_file),
                    loaded] { loaded->status = load_into(*loaded, model, find_file); },
                   [this, loaded] { this->loaded(*loaded); });
  return {};
}

Status Node::load_into(Loaded& loaded, const ModelOptions& model,
                       const std::function<Result<std::filesystem::path>()>& find_file) const {
  W5XDE_TRY(const std::filesystem::path file, find_file());
  const auto make = [make = options_.make_engine, model, file] { return make(model, file); };
  W5XDE_TRY(loaded.engine, make());
  loaded.computation = std::make_unique<Computation>(*loaded.engine, clock_, make);
  const ModelDescription& description = loaded.engine->description();
  const std::uint64_t fingerprint = description.fingerprint();
  if (fingerprint != offer_.model_fingerprint) {
    return incompatible(fmt::format(
        "the model '{}' has fingerprint {:016x} in the run and {:016x} here; update the older w5xde",
        offer_.model, offer_.model_fingerprint, fingerprint));
  }
  loaded.replica.emplace(BlockShape{description.parameters, description.floats()});
  warm_up(loaded);
  return {};
}

void Node::loaded(Loaded& loaded) {
  if (reason_ || leaving_) return;
  engine_ = std::move(loaded.engine);
  computation_ = std::move(loaded.computation);
  replica_ = std::move(loaded.replica);
  Status status = loaded.status.ok() ? make_ready() : std::move(loaded.status);
  if (!status.ok()) connection_->close(std::move(status).error());
}

Status Node::make_ready() {
  lanes_max_ = lanes_at_most();
  encoder_.emplace(replica_->shape(), static_cast<float>(offer_.momentum));
  coded_answers_.emplace(encoder_->gradients());
  Head ready;
  encode(about_this(offer_.model_fingerprint), ready);
  waiting_since_ = loop_.now();
  return send_cold(FrameType::ready, ready);
}

// A library's first computation costs many times its second. It must not be a lease: a whole step would wait
// for it. What targets look like that are no classes is not known yet; those models start cold.
void Node::warm_up(Loaded& loaded) const {
  if (offer_.classes == 0) return;
  constexpr std::uint32_t kSamples = 2;  // BatchNorm wants more than one
  std::vector<std::int64_t> dims = offer_.sample_shape;
  dims.insert(dims.begin(), kSamples);
  const auto shape = Shape::make(dims);
  if (!shape.ok()) return;
  Lease lease{.slot_samples = {kSamples}};
  lease.tensors = {{.dtype = DType::f32, .shape = *shape}, {.dtype = DType::u8, .shape = Shape{kSamples}}};
  const std::uint64_t bytes = payload_bytes_of(lease.tensors);
  if (bytes > kWarmUpBytesMax) return;
  const std::vector<std::byte> zeros(bytes);
  const std::uint64_t floats = loaded.engine->description().floats();
  const Replica::State memory = loaded.replica->take();
  std::fill_n(reinterpret_cast<float*>(memory->data()), floats, 0.0F);
  const std::span<const float> state(reinterpret_cast<const float*>(memory->data()), floats);
  // If it fails, a lease will too, and say why.
  auto computed = loaded.computation->run(lease, zeros, state);
  if (computed.ok()) loaded.computation->give_back(std::move(computed->values));
}

}  // namespace w5xde
