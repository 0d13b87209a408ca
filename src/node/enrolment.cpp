#include "node/enrolment.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <utility>

#include "base/errors.h"
#include "base/file.h"
#include "base/hex.h"
#include "base/shared_memory.h"
#include "w5xde/version.h"
#include "wire/hello.h"
#include "wire/proof.h"

namespace w5xde {

namespace {

// Memory must have room for two versions of the model, a gradient and a sum.
constexpr std::uint64_t kModelBlocksMin = 4;
// The most that an engine's warm-up samples take; models with larger samples start cold.
constexpr std::uint64_t kWarmUpBytesMax = 64 * kMiB;

}  // namespace

Enrolment::Enrolment(const NodeOptions& options, const Clock& clock, const Log& log, Background& background,
                     std::function<void(LoadedModel)> enrolled)
    : options_(options), clock_(clock), log_(log), background_(background), enrolled_(std::move(enrolled)) {}

void Enrolment::begin(Connection& connection) {
  connection_ = &connection;
  Head head;
  encode(Hello{.software = "w5xde " + std::string(kVersion), .name = options_.name, .role = "node"}, head);
  (void)connection_->send({.type = FrameType::hello, .head = head});
}

Status Enrolment::received_hello(Bytes head) {
  W5XDE_TRY(const Hello theirs, decode_hello(head, Limits::stranger()));
  const Hello mine{.software = "w5xde " + std::string(kVersion), .name = options_.name};
  W5XDE_TRY(const std::uint32_t protocol, negotiate(mine, theirs, {connection_->stream().encrypted()}));
  log_.verbose("{} is {}, protocol {}", connection_->stream().peer(), theirs.software, protocol);
  // A coordinator may send a model and batches; the node's memory limits their size.
  connection_->set_limits(limits_);
  return connection_->stream().encrypted() ? prove_invitation() : Status();
}

Status Enrolment::prove_invitation() {
  Proof proof{.machine = options_.machine.computer};
  const auto secret = connection_->stream().session_secret();
  if (options_.invitation && secret) {
    proof.invitation = options_.invitation->id;
    proof.code = proof_of(options_.invitation->secret, *secret, options_.identity);
  }
  Head head;
  encode(proof, head);
  return connection_->send({.type = FrameType::proof, .head = head});
}

// A TorchScript file can do what the user can who runs this node.
Status Enrolment::check_model_file() const {
  const std::string& hash = offer_.model_hash;
  if (hash.empty()) return {};
  std::array<std::byte, sizeof(Digest)> ignored{};
  if (!parse_hex(hash, ignored))
    return incompatible("the hash of the run's model is no SHA-256; update the coordinator's w5xde");
  if (options_.model_files == NodeOptions::ModelFiles::any || std::ranges::count(options_.accepted, hash) > 0)
    return {};
  // Short enough for a goodbye, so that the coordinator's log has all of it too.
  return incompatible(
      "the run's model is a file, which can run any code here; join with an invitation, or, if you trust the "
      "file, with --accept {}",
      hash);
}

// The numbers of the offer that size memory here.
Status Enrolment::check_offer() const {
  if (offer_.inputs.empty()) return corrupt("the run's samples have no input");
  // Subtractions only: a sum could wrap.
  std::uint64_t room = limits_.sample_bytes_max;
  const auto takes = [&](const SampleField& field) {
    const std::uint64_t number_bytes =
        field.kind() == SampleField::Kind::whole ? sizeof(std::int64_t) : sizeof(float);
    if (field.shape.elements() > room / number_bytes) return false;
    room -= field.shape.elements() * number_bytes;
    return true;
  };
  std::vector<SampleField> fields = offer_.inputs;
  fields.push_back(offer_.targets);
  for (const SampleField& field : fields) {
    if (!takes(field))
      return overloaded("the run's samples have '{}' of {}; a sample may have {} bytes", field.name,
                        field.shape.to_string(), limits_.sample_bytes_max);
  }
  return {};
}

Status Enrolment::received_offer(Bytes head) {
  // A lease of the first offer may be computing with its engine.
  if (stage_ != Stage::greeting) return corrupt("a second offer");
  stage_ = Stage::looking;
  W5XDE_TRY(offer_, decode_offer(head, limits_));
  W5XDE_CHECK(check_offer());
  W5XDE_CHECK(check_model_file());
  if (offer_.threads != options_.threads)
    return incompatible("this run computes a slot with {} threads; join with --threads {}", offer_.threads,
                        offer_.threads);
  connection_->tune({.quick_ack = offer_.quick_ack,
                     .keep_alive = offer_.keep_alive,
                     .send_buffer_bytes = offer_.socket_buffer,
                     .receive_buffer_bytes = offer_.socket_buffer,
                     .receive_chunk_bytes = offer_.receive_chunk,
                     .combined_send = offer_.combined_send});
  if (offer_.model_hash.empty()) return load([] { return std::filesystem::path(); });
  look_for_file();
  return {};
}

void Enrolment::look_for_file() {
  const auto file = options_.model_cache / (offer_.model_hash + ".pt");
  const auto is_cached = std::make_shared<bool>(false);
  background_.run(
      [this, file, is_cached, hash = offer_.model_hash] {
        const auto cached = MappedFile::open(file);
        WorkProgress progress(&log_, clock_, fmt::format("{}: hashing {}", options_.name, file.string()));
        *is_cached = cached.ok() && sha256_hex(cached->bytes(), progress.teller()) == hash;
      },
      [this, file, is_cached] {
        Status status =
            *is_cached ? load([file] { return Result<std::filesystem::path>(file); }) : ask_for_model();
        if (!status.ok()) connection_->close(std::move(status).error());
      });
}

Status Enrolment::ask_for_model() {
  const std::uint64_t bytes_max = std::min(limits_.model_file_bytes_max, options_.machine.memory_bytes / 2);
  if (offer_.model_bytes == 0 || offer_.model_bytes > bytes_max)
    return overloaded("the run's model has {} bytes; at most {}", offer_.model_bytes, bytes_max);
  stage_ = Stage::fetching;
  arriving_.emplace(
      &log_, clock_,
      fmt::format("{}: fetching the model, {}", options_.name, megabytes_text(offer_.model_bytes)));
  Head request;
  encode(ModelPart{}, request);
  return connection_->send({.type = FrameType::model, .head = request});
}

Result<MutableBytes> Enrolment::place_model(const FrameHeader& header, Bytes head) {
  W5XDE_TRY(const ModelPart part, decode_model_part(head, limits_));
  const std::uint64_t received = model_bytes_.size();
  if (stage_ != Stage::fetching || part.offset != received || part.bytes > offer_.model_bytes - received ||
      header.payload_bytes != part.bytes || header.codec != 0)
    return corrupt("a part of the model's file that was not asked for");
  model_bytes_.resize(received + part.bytes);
  return MutableBytes(model_bytes_.data() + received, part.bytes);
}

Status Enrolment::received_model() {
  arriving_->tell(model_bytes_.size(), offer_.model_bytes);
  if (model_bytes_.size() < offer_.model_bytes) return {};
  arriving_.reset();
  const auto bytes = std::make_shared<std::vector<std::byte>>(std::exchange(model_bytes_, {}));
  return load([bytes, announced = offer_.model_hash,
               cache = options_.model_cache]() -> Result<std::filesystem::path> {
    const std::string hash = sha256_hex(*bytes);
    if (hash != announced)
      return corrupt("the model's file arrived with hash {}; the offer says {}", hash, announced);
    std::error_code ignored;  // what matters is whether the file can be written
    std::filesystem::create_directories(cache, ignored);
    const auto file = cache / (hash + ".pt");
    const Bytes part = *bytes;
    W5XDE_CHECK(write_file_atomically(file, {&part, 1}));
    return file;
  });
}

void Enrolment::tell_of_first_parameters(std::uint64_t floats, std::uint64_t floats_total) {
  if (!arriving_)
    arriving_.emplace(&log_, clock_,
                      fmt::format("{}: fetching the parameters, {}", options_.name,
                                  megabytes_text(floats_total * sizeof(float))));
  arriving_->tell(floats, floats_total);
  if (floats == floats_total) arriving_.reset();
}

Ready Enrolment::describe_node(const Engine& engine) const {
  Ready ready{.model_fingerprint = offer_.model_fingerprint,
              .compute = offer_.compute,
              .engine = engine.name(),
              .processor = processor_name(),
              .sample_cache_bytes = options_.sample_cache_bytes,
              .memory_token = SharedProbe::answer_to(offer_.memory_probe)};
  if (engine.uses_cores()) {
    ready.machine = options_.machine.id;
    ready.lanes = std::max(1u, options_.machine.cores / std::max(1u, options_.threads));
  }
  return ready;
}

// One lane where a slot's threads use the cores already, or where a device computes.
std::uint32_t Enrolment::lanes_max(const Engine& engine) const {
  if (!engine.uses_cores() || offer_.threads > 1) return 1;
  const std::uint64_t lane_bytes = Limits::kLaneBlocks * engine.description().floats() * sizeof(float);
  const std::uint64_t with_memory =
      options_.machine.memory_bytes / 2 / std::max<std::uint64_t>(1, lane_bytes);
  return static_cast<std::uint32_t>(
      std::max<std::uint64_t>(1, std::min<std::uint64_t>(with_memory, options_.machine.cores)));
}

Status Enrolment::load(FindFile find_file) {
  stage_ = Stage::loading;
  const ModelOptions model{.model = offer_.model,
                           .loss = offer_.loss,
                           .inputs = offer_.inputs,
                           .targets = offer_.targets,
                           .classes = offer_.classes,
                           .ignore_index = offer_.ignore_index,
                           .preparation = offer_.preparation,
                           .threads = offer_.threads,
                           .device = options_.device,
                           .compute = offer_.compute,
                           .floats_max = options_.machine.memory_bytes / (kModelBlocksMin * sizeof(float))};
  const auto loading = std::make_shared<Loading>();
  background_.run([this, model, find_file = std::move(find_file),
                   loading] { loading->status = load_into(loading->model, model, find_file); },
                  [this, loading] { loaded(*loading); });
  return {};
}

Status Enrolment::load_into(LoadedModel& loaded, const ModelOptions& options,
                            const FindFile& find_file) const {
  W5XDE_TRY(const std::filesystem::path file, find_file());
  const auto make = [make = options_.make_engine, options, file] { return make(options, file); };
  W5XDE_TRY(loaded.engine, make());
  loaded.computation = std::make_unique<Computation>(*loaded.engine, clock_, make);
  const ModelDescription& description = loaded.engine->description();
  const std::uint64_t fingerprint = fingerprint_of(description);
  if (fingerprint != offer_.model_fingerprint)
    return incompatible(
        "the model '{}' has fingerprint {:016x} in the run and {:016x} here; update the older w5xde",
        offer_.model, offer_.model_fingerprint, fingerprint);
  loaded.replica.emplace(BlockShape{description.parameters, description.floats()});
  loaded.lanes_max = lanes_max(*loaded.engine);
  warm_up(loaded);
  return {};
}

void Enrolment::loaded(Loading& loading) {
  if (!connection_->open()) return;  // the node is leaving, or was lost
  if (!loading.status.ok()) return connection_->close(std::move(loading.status).error());
  Head ready;
  encode(describe_node(*loading.model.engine), ready);
  log_.normal("{}: joined run {} at {}, model {}", options_.name, offer_.run, connection_->stream().peer(),
              offer_.model);
  enrolled_(std::move(loading.model));
  Status status = connection_->send({.type = FrameType::ready, .head = ready});
  if (!status.ok()) connection_->close(std::move(status).error());
}

// A library's first computation takes many times longer than its second, and a whole step would wait for it.
void Enrolment::warm_up(LoadedModel& loaded) const {
  constexpr std::uint32_t kSamples = 2;  // BatchNorm wants more than one
  Lease lease{.slot_samples = {kSamples}};
  std::vector<SampleField> fields = offer_.inputs;
  fields.push_back(offer_.targets);
  for (const SampleField& field : fields) {
    std::vector<std::int64_t> dims(field.shape.dims().begin(), field.shape.dims().end());
    dims.insert(dims.begin(), kSamples);
    const auto shape = Shape::make(dims);
    if (!shape.ok()) return;
    lease.tensors.push_back({.dtype = field.dtype, .shape = *shape});
  }
  const std::uint64_t bytes = payload_bytes_of(lease.tensors);
  if (bytes > kWarmUpBytesMax) return;
  const std::vector<std::byte> zeros(bytes);
  const std::uint64_t floats = loaded.engine->description().floats();
  // Zeros that nobody has written take no memory: the kernel has one page of them for all.
  const std::unique_ptr<void, decltype(&std::free)> memory(std::calloc(floats, sizeof(float)), &std::free);
  if (!memory) return;
  const std::span<const float> state(static_cast<const float*>(memory.get()), floats);
  // If this fails, a lease will fail too, and say why.
  auto computed = loaded.computation->run(lease, zeros, state);
  if (!computed.ok()) return;
  if (state.size_bytes() < kLargeModelBytes) {
    loaded.computation->give_back(std::move(computed->values));
  } else {
    computed->values.reset();
    malloc_trim(0);
  }
}

}  // namespace w5xde
