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

constexpr std::uint64_t kModelFileBytesMax = 2 * kGiB;
// What a lane has in memory, in blocks of a model's size: the gradients of two slots, their sum, one that
// waits.
constexpr std::uint64_t kLaneBlocks = 4;

}  // namespace

Status Node::received_hello(Bytes head) {
  W5XDE_TRY(const Hello theirs, decode_hello(head, Limits::stranger()));
  const Hello mine{.software = "w5xde " + std::string(kVersion), .name = options_.name};
  W5XDE_TRY(const Agreement agreement, negotiate(mine, theirs, {connection_->stream().encrypted()}));
  log_.verbose("{} is {}, protocol {}", connection_->stream().peer(), theirs.software, agreement.protocol);
  // A coordinator is trusted with the model and its batches; how large those may be is the node's memory.
  limits_ = Limits{};
  connection_->set_limits(limits_);
  return {};
}

Status Node::received_offer(Bytes head) {
  // A lease of the first may be computing with its engine.
  if (!offer_.model.empty()) return corrupt("a second offer");
  W5XDE_TRY(offer_, decode_offer(head, limits_));
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
  if (offer_.model_hash.empty()) return make_ready({});
  const auto file = options_.model_cache / (offer_.model_hash + ".pt");
  const auto cached = MappedFile::open(file);
  if (cached.ok() && hash128_hex(cached->bytes()) == offer_.model_hash) return make_ready(file);
  if (offer_.model_bytes == 0 || offer_.model_bytes > kModelFileBytesMax) {
    return overloaded(
        fmt::format("the run's model has {} bytes; at most {}", offer_.model_bytes, kModelFileBytesMax));
  }
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
  const std::string hash = hash128_hex(model_bytes_);
  if (hash != offer_.model_hash) {
    return corrupt(
        fmt::format("the model's file came with hash {}, {} was announced", hash, offer_.model_hash));
  }
  std::error_code ignored;  // what matters is whether the file can be written
  std::filesystem::create_directories(options_.model_cache, ignored);
  const auto file = options_.model_cache / (hash + ".pt");
  const Bytes bytes = model_bytes_;
  W5XDE_CHECK(write_file_atomically(file, {&bytes, 1}));
  model_bytes_ = {};
  return make_ready(file);
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
  const std::uint64_t lane_bytes = kLaneBlocks * engine_->description().floats() * sizeof(float);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      options_.machine.memory_bytes / 2 / std::max<std::uint64_t>(1, lane_bytes), 1, UINT32_MAX));
}

Status Node::make_ready(const std::filesystem::path& model_file) {
  W5XDE_TRY(const Shape sample_shape, Shape::make(offer_.sample_shape));
  const ModelOptions model{.model = offer_.model,
                           .loss = offer_.loss,
                           .sample_shape = sample_shape,
                           .classes = offer_.classes,
                           .threads = offer_.threads,
                           .device = options_.device};
  W5XDE_TRY(engine_, options_.make_engine(model, model_file));
  computation_.emplace(*engine_,
                       [make = options_.make_engine, model, model_file] { return make(model, model_file); });
  lanes_max_ = lanes_at_most();
  const std::uint64_t fingerprint = engine_->description().fingerprint();
  if (fingerprint != offer_.model_fingerprint) {
    return incompatible(fmt::format(
        "the model '{}' has fingerprint {:016x} in the run and {:016x} here; update the older w5xde",
        offer_.model, offer_.model_fingerprint, fingerprint));
  }
  const BlockShape shape{engine_->description().parameters, engine_->description().floats()};
  replica_.emplace(shape);
  encoder_.emplace(shape, static_cast<float>(offer_.momentum));
  warm_up();
  Head ready;
  encode(about_this(fingerprint), ready);
  waiting_since_ = loop_.now();
  return send_cold(FrameType::ready, ready);
}

// A library's first computation costs many times its second. It must not be a lease: a whole step would wait
// for it. What targets look like that are no classes is not known yet; those models start cold.
void Node::warm_up() {
  if (offer_.classes == 0) return;
  constexpr std::uint32_t kSamples = 2;  // BatchNorm wants more than one
  std::vector<std::int64_t> dims = offer_.sample_shape;
  dims.insert(dims.begin(), kSamples);
  const auto shape = Shape::make(dims);
  if (!shape.ok()) return;
  Lease lease{.slot_samples = {kSamples}};
  lease.tensors = {{.dtype = DType::f32, .shape = *shape}, {.dtype = DType::u8, .shape = Shape{kSamples}}};
  const std::vector<std::byte> zeros(payload_bytes_of(lease.tensors));
  const std::uint64_t floats = engine_->description().floats();
  const Replica::State memory = replica_->take();
  std::fill_n(reinterpret_cast<float*>(memory->data()), floats, 0.0F);
  const std::span<const float> state(reinterpret_cast<const float*>(memory->data()), floats);
  // If it fails, a lease will too, and say why.
  auto computed = computation_->run(lease, zeros, state);
  if (computed.ok()) computation_->give_back(std::move(computed->values));
}

}  // namespace w5xde
