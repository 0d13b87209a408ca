#include "node/node.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/hash.h"
#include "w5xde/version.h"
#include "wire/hello.h"

namespace w5xde {

namespace {

// Leases shorter than this are computed on the loop's thread. Longer ones must not keep heartbeats waiting.
constexpr double kInlineSecondsMax = 0.02;
constexpr std::uint64_t kModelFileBytesMax = 2 * kGiB;

}  // namespace

Node::Node(Loop& loop, NodeOptions options, const Log& log)
    : loop_(loop),
      options_(std::move(options)),
      log_(log),
      receiver_(nullptr),
      returned_(std::make_shared<std::vector<Reduction::Buffer>>()) {}

Node::~Node() {
  thread_.reset();
  if (connection_) connection_->detach();
}

void Node::start(std::unique_ptr<Stream> stream) {
  connection_ = Connection::start(std::move(stream), *this, Limits::stranger());
  const Hello hello{.software = "w5xde " + std::string(kVersion),
                    .name = options_.name,
                    .role = "node",
                    .codecs = {"none", "zlib", "lz4", "lz4-frame", "zstd"}};
  encode(hello, head_);
  (void)send_cold(FrameType::hello, head_);
}

Status Node::send_cold(FrameType type, const Head& head) {
  return connection_->send({.type = type, .head = head});
}

void Node::closed(const Error& reason) {
  parted_ = parted_ || connection_->goodbye_received();
  ended_ = reason;
  leases_.clear();
}

void Node::leave(std::string reason) {
  leaving_ = std::move(reason);
  leases_.clear();
  if (!computing_) end_leave();
}

void Node::end_leave() {
  parted_ = true;
  if (connection_ && connection_->open()) {
    connection_->close(disconnected(*leaving_));
  } else if (!ended_) {
    ended_ = disconnected(*leaving_);
  }
}

Result<MutableBytes> Node::place(const FrameHeader& header, Bytes head) {
  switch (header.type) {
    case FrameType::parameters:
      return place_parameters(header, head);
    case FrameType::lease:
      return place_lease(header, head);
    case FrameType::model:
      return place_model(header, head);
    default:
      if (header.payload_bytes == 0) return MutableBytes();
      return corrupt(fmt::format("a {} frame with a payload", name_of(header.type)));
  }
}

Status Node::received(const FrameHeader& header, Bytes head, MutableBytes payload) {
  // place() is asked for payloads only: without one, what it prepares is not there, or is of the frame
  // before.
  const bool carries = header.type == FrameType::parameters || header.type == FrameType::lease ||
                       header.type == FrameType::model;
  if (carries && payload.empty())
    return corrupt(fmt::format("a {} frame without a payload", name_of(header.type)));
  switch (header.type) {
    case FrameType::hello:
      return received_hello(head);
    case FrameType::offer:
      return received_offer(head);
    case FrameType::model:
      return received_model();
    case FrameType::parameters:
      return received_parameters(header, payload);
    case FrameType::lease: {
      const MutableBytes raw(arriving_.payload->data(), payload_bytes_of(arriving_.lease.tensors));
      W5XDE_CHECK(receiver_.finish(header, payload, raw));
      if (!leaving_) leases_.push_back(std::exchange(arriving_, {}));
      compute_next();
      return {};
    }
    default:
      return corrupt(fmt::format("a coordinator does not send {} frames", name_of(header.type)));
  }
}

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
  if (sender_) return corrupt("a second offer");
  W5XDE_TRY(offer_, decode_offer(head, limits_));
  if (offer_.threads != options_.threads) {
    return incompatible(fmt::format("this run computes a slot with {} threads; join with --threads {}",
                                    offer_.threads, offer_.threads));
  }
  W5XDE_TRY(const LosslessCodec codec, parse_lossless(offer_.codec));
  sender_.emplace(SectionCodec{.lossless = codec}, nullptr);
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
  Ready ready{.model_fingerprint = fingerprint, .engine = engine_->name(), .processor = processor_name()};
  if (engine_->uses_cores()) {
    ready.machine = options_.machine.id;
    ready.lanes = std::max(1u, options_.machine.cores / std::max(1u, options_.threads));
  }
  return ready;
}

Status Node::make_ready(const std::filesystem::path& model_file) {
  W5XDE_TRY(const Shape sample_shape, Shape::make(offer_.sample_shape));
  W5XDE_TRY(engine_, options_.make_engine({.model = offer_.model,
                                           .loss = offer_.loss,
                                           .sample_shape = sample_shape,
                                           .classes = offer_.classes,
                                           .threads = offer_.threads,
                                           .device = options_.device},
                                          model_file));
  computation_.emplace(*engine_);
  const std::uint64_t fingerprint = engine_->description().fingerprint();
  if (fingerprint != offer_.model_fingerprint) {
    return incompatible(fmt::format(
        "the model '{}' has fingerprint {:016x} in the run and {:016x} here; update the older w5xde",
        offer_.model, offer_.model_fingerprint, fingerprint));
  }
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
  states_.push_back(std::make_shared<AlignedBuffer>(floats * sizeof(float)));
  std::fill_n(reinterpret_cast<float*>(states_.back()->data()), floats, 0.0F);
  const std::span<const float> state(reinterpret_cast<const float*>(states_.back()->data()), floats);
  // If it fails, a lease will too, and say why.
  auto computed = computation_->run(lease, zeros, state);
  if (computed.ok()) computation_->give_back(std::move(computed->values));
}

Result<MutableBytes> Node::place_parameters(const FrameHeader& header, Bytes head) {
  if (!engine_) return corrupt("parameters before the model");
  W5XDE_TRY(Parameters parameters, decode_parameters(head, limits_));
  const std::uint64_t floats = engine_->description().floats();
  if (parameters.floats_total != floats) {
    return corrupt(
        fmt::format("parameters of {} floats; this model has {}", parameters.floats_total, floats));
  }
  if (!landing_ || parameters.version != landing_parameters_.version) {
    // Not where the newest version is, nor where one is being computed with.
    const auto free =
        std::ranges::find_if(states_, [](const State& state) { return state.use_count() == 1; });
    landing_ = free != states_.end() ? *free : std::make_shared<AlignedBuffer>(floats * sizeof(float));
    if (free == states_.end()) states_.push_back(landing_);
    landed_floats_ = 0;
  }
  if (parameters.first_float != landed_floats_) return corrupt("parameters with a hole in them");
  landing_bytes_ = {landing_->data() + parameters.first_float * sizeof(float),
                    parameters.tensors[0].byte_count()};
  landing_parameters_ = std::move(parameters);
  return receiver_.place(header, landing_bytes_);
}

Status Node::received_parameters(const FrameHeader& header, Bytes payload) {
  W5XDE_CHECK(receiver_.finish(header, payload, landing_bytes_));
  landed_floats_ += landing_bytes_.size() / sizeof(float);
  if (landed_floats_ < landing_parameters_.floats_total) return {};
  state_ = std::move(landing_);
  landing_ = nullptr;
  version_ = landing_parameters_.version;
  compute_next();
  return {};
}

Result<MutableBytes> Node::place_lease(const FrameHeader& header, Bytes head) {
  if (!engine_) return corrupt("a lease before the model");
  W5XDE_TRY(arriving_.lease, decode_lease(head, limits_));
  const std::uint64_t bytes = payload_bytes_of(arriving_.lease.tensors);
  arriving_.payload = std::make_shared<AlignedBuffer>(bytes);
  return receiver_.place(header, {arriving_.payload->data(), bytes});
}

bool Node::computable(const Lease& lease) const {
  if (!state_) return false;
  return lease.version == version_ || (offer_.newest_parameters && lease.work == Work::train);
}

// Looks for work from the loop, so that what was just sent is on its way first.
void Node::compute_next() {
  if (computing_ || compute_posted_ || leases_.empty()) return;
  compute_posted_ = true;
  loop_.post([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    compute_posted_ = false;
    if (computing_ || ended_) return;
    while (true) {
      const auto next = std::ranges::find_if(leases_, [&](const Pending& pending) {
        return computable(pending.lease) || pending.lease.version < version_;
      });
      if (next == leases_.end()) return;
      Pending pending = std::move(*next);
      leases_.erase(next);
      if (computable(pending.lease)) return compute(std::move(pending));
      // The step went on without us; say so, as every lease is answered.
      if (!answer_void(pending.lease).ok()) return;
    }
  });
}

std::uint64_t Node::wait_until_now() {
  if (!waiting_since_) return 0;
  const Duration waited = loop_.now() - *waiting_since_;
  waiting_since_.reset();
  return static_cast<std::uint64_t>(std::max<Duration::rep>(waited.count(), 0));
}

void Node::compute(Pending pending) {
  computing_ = true;
  for (auto& buffer : *returned_) computation_->give_back(std::move(buffer));
  returned_->clear();
  wait_ns_ += wait_until_now();
  version_computed_ = version_;
  const auto work = std::make_shared<Pending>(std::move(pending));
  const auto run = [this, work, state = state_] {
    const Bytes payload(work->payload->data(), payload_bytes_of(work->lease.tensors));
    const std::span<const float> floats(reinterpret_cast<const float*>(state->data()),
                                        engine_->description().floats());
    return computation_->run(work->lease, payload, floats);
  };
  if (lease_seconds_ <= kInlineSecondsMax) return computed(work->lease, run());
  if (!thread_) thread_ = std::make_unique<ThreadPool>(1);
  thread_->submit([this, run, work, alive = std::weak_ptr(alive_)] {
    auto result = std::make_shared<Result<Computed>>(run());
    loop_.post([this, work, result, alive] {
      if (!alive.expired()) computed(work->lease, std::move(*result));
    });
  });
}

void Node::computed(const Lease& lease, Result<Computed> result) {
  computing_ = false;
  waiting_since_ = loop_.now();
  if (ended_) return;
  Status status = result.ok() ? answer(lease, *result) : std::move(result).error();
  if (!status.ok()) return connection_->close(std::move(status).error());
  if (leaving_) return end_leave();
  compute_next();
}

Status Node::answer(const Lease& lease, Computed& result) {
  lease_seconds_ = seconds_of(result.busy);
  slots_computed_ += lease.block.slot_count;
  const Duration codec = sender_->stats().busy + receiver_.stats().busy;
  Contribution contribution{.lease_id = lease.lease_id,
                            .step = lease.step,
                            .version = version_computed_,
                            .block = lease.block,
                            .samples = result.sums.samples,
                            .loss_sum = result.sums.loss,
                            .correct = result.correct,
                            .compute_ns = static_cast<std::uint64_t>(result.busy.count()),
                            .wait_ns = std::exchange(wait_ns_, 0),
                            .codec_ns = static_cast<std::uint64_t>((codec - codec_told_).count())};
  codec_told_ = codec;
  head_.clear();
  if (!result.values) {
    encode(contribution, head_);
    return send_cold(FrameType::contribution, head_);
  }
  const auto floats = static_cast<std::int64_t>(engine_->description().floats());
  contribution.tensors = {{DType::f32, Shape{floats}}};
  encode(contribution, head_);
  const TensorView values({result.values->data(), static_cast<std::size_t>(floats) * sizeof(float)},
                          DType::f32, Shape{floats});
  // When the last byte is written the memory comes back.
  std::shared_ptr<AlignedBuffer> keep(result.values.release(), [returned = returned_](AlignedBuffer* buffer) {
    returned->emplace_back(buffer);
  });
  return sender_->send(*connection_, FrameType::contribution, head_, {&values, 1}, std::move(keep));
}

Status Node::answer_void(const Lease& lease) {
  head_.clear();
  encode(
      Contribution{
          .lease_id = lease.lease_id, .step = lease.step, .version = lease.version, .block = lease.block},
      head_);
  return send_cold(FrameType::contribution, head_);
}

}  // namespace w5xde
