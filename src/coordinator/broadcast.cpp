#include "coordinator/broadcast.h"

#include <algorithm>
#include <cstring>

namespace w5xde {

namespace {

// So that a node's heartbeat gets in between.
constexpr std::uint64_t kPartFloats = 4 * 1024 * 1024;

std::span<const float> floats_of(const AlignedBuffer& buffer, std::uint64_t count) {
  return {reinterpret_cast<const float*>(buffer.data()), count};
}

}  // namespace

Broadcast::Broadcast(BlockShape shape, bool generic, ThreadPool* pool)
    : shape_(std::move(shape)), generic_(generic), sender_(pool), encoder_(shape_, 0) {}

std::span<float> Broadcast::shown_floats() {
  return {reinterpret_cast<float*>(shown_->data()), shape_.floats};
}

std::span<const float> Broadcast::shown() const {
  if (!shown_) return {};
  return floats_of(*shown_, shape_.parameters->floats());
}

void Broadcast::restore(std::span<const float> shown, const Learner& learner) {
  shown_ = std::make_shared<AlignedBuffer>(shape_.floats * sizeof(float));
  std::memcpy(shown_->data(), learner.state()->data(), shape_.floats * sizeof(float));
  std::ranges::copy(shown, shown_floats().begin());
  shown_version_ = learner.version();
}

void Broadcast::set_codec(const GradientCodec& codec) {
  codec_ = codec;
  if (!coded()) refresh();
}

void Broadcast::refresh() {
  shown_ = nullptr;
  shown_version_ = kNoVersion;
  differences_.clear();
  difference_bytes_ = 0;
  wholes_.clear();
}

Broadcast::Part Broadcast::make_part(const Parameters& parameters, std::uint64_t raw_bytes,
                                     const TensorView& floats, const Formed& formed,
                                     const SectionCodec& codec, LosslessPolicy* policy) {
  Part part{.payload = floats,
            .checksum = std::make_shared<std::optional<std::uint64_t>>(),
            .raw_bytes = raw_bytes};
  if (formed.bytes) {
    part.payload = TensorView::of_bytes(*formed.bytes);
    part.keep = formed.bytes;
  }
  encode(parameters, part.head);
  if (auto section = sender_.encode({&part.payload, 1}, codec, policy)) {
    part.codec = static_cast<std::uint8_t>(codec.lossless.kind);
    part.shuffle_width = codec.shuffle_width;
    part.payload = TensorView::of_bytes(section->bytes);
    part.keep = std::move(section->keep);
  }
  return part;
}

const Broadcast::Whole& Broadcast::whole(const Learner::State& state, std::uint64_t version,
                                         const Lossless& lossless, Connection& connection) {
  std::erase_if(wholes_, [&](const Whole& made) { return made.version != version; });
  const std::uint64_t part_bytes = std::min(kPartFloats, shape_.floats) * sizeof(float);
  const SectionCodec codec = PayloadSender::choose(lossless, part_bytes, connection);
  const auto found = std::ranges::find(wholes_, codec, &Whole::lossless);
  if (found != wholes_.end()) return *found;
  Whole made{version, codec, {}};
  const Bytes bytes(state->data(), shape_.floats * sizeof(float));
  for (std::uint64_t first = 0; first < shape_.floats; first += kPartFloats) {
    const std::uint64_t count = std::min(kPartFloats, shape_.floats - first);
    const Shape shape{static_cast<std::int64_t>(count)};
    const TensorView floats(bytes.subspan(first * sizeof(float), count * sizeof(float)), DType::f32, shape);
    const Formed formed = generic_ ? form_generic({&floats, 1}) : Formed();
    made.parts.push_back(make_part({.version = version,
                                    .first_float = first,
                                    .floats_total = shape_.floats,
                                    .coding = formed.coding,
                                    .tensors = {{DType::f32, shape}}},
                                   floats.byte_count(), floats, formed, codec, lossless.policy));
  }
  wholes_.push_back(std::move(made));
  return wholes_.back();
}

const Broadcast::Part& Broadcast::part_of(Difference& difference, const Lossless& lossless,
                                          Connection& connection) {
  const SectionCodec codec = PayloadSender::choose(lossless, difference.formed.bytes->size(), connection);
  for (const auto& [made_with, part] : difference.parts) {
    if (made_with == codec) return part;
  }
  difference.parts.emplace_back(codec, make_part(difference.message, shape_.floats * sizeof(float), {},
                                                 difference.formed, codec, lossless.policy));
  return difference.parts.back().second;
}

Broadcast::Difference Broadcast::difference_to(const Learner& learner) {
  const auto now = floats_of(*learner.state(), shape_.floats);
  const std::uint64_t parameters = shape_.parameters->floats();
  change_.resize(shape_.floats);
  const auto before = shown_floats();
  for (std::uint64_t i = 0; i < parameters; ++i) change_[i] = now[i] - before[i];
  std::ranges::copy(now.subspan(parameters), change_.begin() + static_cast<std::ptrdiff_t>(parameters));
  // What the codec loses is in the next difference anyway.
  encoder_.gradients().forget();
  Difference made{
      .from = shown_version_, .to = learner.version(), .formed = encoder_.encode(change_, codec_)};
  made.message = {.version = learner.version(),
                  .base = shown_version_,
                  .floats_total = shape_.floats,
                  .coding = made.formed.coding,
                  .tensors = {{DType::f32, Shape{static_cast<std::int64_t>(shape_.floats)}}}};
  // What the nodes will make of it.
  const Target target{std::as_writable_bytes(std::span(change_)), made.message.tensors, &shape_};
  (void)unform(*made.formed.bytes, made.formed.coding, target);  // it was made right here
  return made;
}

// The learner's version, as nodes are to see it.
void Broadcast::show(const Learner& learner) {
  if (!coded() || shown_version_ == learner.version()) return;
  if (!shown_) {
    // Whoever has this version has it exactly.
    shown_ = std::make_shared<AlignedBuffer>(shape_.floats * sizeof(float));
    std::memcpy(shown_->data(), learner.state()->data(), shape_.floats * sizeof(float));
    shown_version_ = learner.version();
    return;
  }
  Difference difference = difference_to(learner);
  // A frame that is not written yet must go on showing the old version.
  if (shown_.use_count() > 1) {
    if (!other_ || other_.use_count() > 1)
      other_ = std::make_shared<AlignedBuffer>(shape_.floats * sizeof(float));
    std::memcpy(other_->data(), shown_->data(), shape_.floats * sizeof(float));
    std::swap(shown_, other_);
  }
  const auto shown = shown_floats();
  const std::uint64_t parameters = shape_.parameters->floats();
  for (std::uint64_t i = 0; i < parameters; ++i) shown[i] = shown[i] + change_[i];
  std::copy(change_.begin() + static_cast<std::ptrdiff_t>(parameters), change_.end(),
            shown.begin() + static_cast<std::ptrdiff_t>(parameters));
  shown_version_ = learner.version();
  difference_bytes_ += difference.formed.bytes->size();
  differences_.push_back(std::move(difference));
  // A node that is further behind gets a whole version, which is less.
  while (differences_.size() > 1 && difference_bytes_ > shape_.floats * sizeof(float)) {
    difference_bytes_ -= differences_.front().formed.bytes->size();
    differences_.pop_front();
  }
}

Status Broadcast::send(const Part& part, const Learner::State& state, Connection& connection,
                       PayloadStats& stats) {
  stats.raw_bytes += part.raw_bytes;
  stats.wire_bytes += part.payload.byte_count();
  return connection.send({.type = FrameType::parameters,
                          .codec = part.codec,
                          .shuffle_width = part.shuffle_width,
                          .head = part.head,
                          .payload = {&part.payload, 1},
                          .keep = part.keep ? part.keep : state,
                          .checksum = part.checksum});
}

Status Broadcast::send(const Learner& learner, std::uint64_t held, const Lossless& lossless,
                       Connection& connection, PayloadStats& stats) {
  const Duration before = sender_.stats().busy;
  show(learner);
  const auto first = std::ranges::find(differences_, held, &Difference::from);
  std::uint64_t bytes = 0;
  for (auto each = first; each != differences_.end(); ++each) bytes += each->formed.bytes->size();
  Status status;
  if (first != differences_.end() && bytes < shape_.floats * sizeof(float)) {
    for (auto each = first; each != differences_.end() && status.ok(); ++each)
      status = send(part_of(*each, lossless, connection), shown_, connection, stats);
  } else {
    const Learner::State& state = coded() ? shown_ : learner.state();
    for (const Part& part : whole(state, learner.version(), lossless, connection).parts) {
      if (status.ok()) status = send(part, state, connection, stats);
    }
  }
  stats.busy += sender_.stats().busy - before;
  return status;
}

}  // namespace w5xde
