#include "versions/broadcast.h"

#include <algorithm>
#include <cstring>

namespace w5xde {

namespace {

// Where parts are not asked for, so that a node's heartbeat gets in between.
constexpr std::uint64_t kPartFloatsMax = 4 * 1024 * 1024;
// The part of usual_bytes() that one version replaces: nodes are sent theirs with different codecs.
constexpr double kSmoothing = 0.2;

std::span<float> floats_of(AlignedBuffer& buffer, FloatRange range) {
  return {reinterpret_cast<float*>(buffer.data()) + range.first, range.count};
}

}  // namespace

std::uint64_t Broadcast::Parts::floats() const {
  if (parts.empty()) return 0;
  return parts.back().message.first_float + parts.back().message.tensors[0].shape.elements();
}

std::uint64_t Broadcast::Parts::bytes() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts) sum += part.bytes();
  return sum;
}

Broadcast::Broadcast(BlockShape shape, const Options& options, ThreadPool* pool, const Clock& clock)
    : shape_(std::move(shape)), options_(options), sender_(pool, clock), encoder_(shape_, 0) {
  if (options_.part_floats == 0) options_.part_floats = kPartFloatsMax;
}

std::span<const float> Broadcast::shown() const {
  if (!shown_) return {};
  return floats_of(*shown_, {0, shape_.parameters->floats()});
}

Learner::State Broadcast::free_memory() {
  if (!other_ || other_.use_count() > 1)
    other_ = std::make_shared<AlignedBuffer>(shape_.floats * sizeof(float));
  return std::exchange(other_, nullptr);
}

void Broadcast::restore(std::span<const float> shown, const Learner& learner) {
  shown_ = free_memory();
  std::memcpy(shown_->data(), learner.state()->data(), shape_.floats * sizeof(float));
  std::ranges::copy(shown, floats_of(*shown_, {0, shown.size()}).begin());
  shown_version_ = learner.version();
}

void Broadcast::set_codec(const GradientCodec& codec) {
  if (codec != codec_) wholes_.clear();  // of what would be shown with the other
  codec_ = codec;
  if (!coded()) refresh();
}

void Broadcast::refresh() {
  if (shown_) inexact_version_ = shown_version_;
  shown_ = next_shown_ = nullptr;
  shown_version_ = kNoVersion;
  next_difference_.reset();
  differences_.clear();
  difference_bytes_ = 0;
  wholes_.clear();
}

Parameters Broadcast::message_of(const Parts& parts, FloatRange range) const {
  return {.version = parts.to,
          .base = parts.from,
          .first_float = range.first,
          .floats_total = shape_.floats,
          .tensors = {{DType::f32, Shape{static_cast<std::int64_t>(range.count)}}}};
}

// A version's parts, up to this float.
Broadcast::Parts& Broadcast::whole(const Learner::State& state, std::uint64_t version,
                                   std::uint64_t floats_end) {
  std::erase_if(wholes_, [&](const Parts& made) { return made.to + 1 < version; });
  const auto found = std::ranges::find(wholes_, version, &Parts::to);
  Parts& made = found != wholes_.end() ? *found : wholes_.emplace_back(Parts{.to = version});
  while (made.floats() < floats_end) {
    const FloatRange range = part_at(made.floats(), options_.part_floats, shape_);
    if (range.end() > floats_end) break;
    Part part{.message = message_of(made, range), .raw_bytes = range.count * sizeof(float)};
    part.floats =
        TensorView(std::as_bytes(floats_of(*state, range)), DType::f32, part.message.tensors[0].shape);
    if (options_.generic) part.formed = form_generic({&part.floats, 1});
    part.message.coding = part.formed.coding;
    made.parts.push_back(std::move(part));
  }
  return made;
}

const Broadcast::Encoded& Broadcast::encoded(Part& part, std::size_t number, PartCodecs codecs,
                                             FrameSender& link) {
  if (codecs.policies.size() <= number) codecs.policies.resize(number + 1);
  LosslessPolicy* policy = codecs.fixed != nullptr ? nullptr : &codecs.policies[number];
  const SectionCodec codec = PayloadSender::choose({codecs.fixed, policy}, part.bytes(), link);
  const auto found = std::ranges::find(part.encoded, codec, &Encoded::lossless);
  if (found != part.encoded.end()) return *found;
  Encoded made{.lossless = codec,
               .payload = part.formed.direct() ? part.floats : TensorView::of_bytes(part.formed.bytes),
               .keep = part.formed.keep,
               .checksum = std::make_shared<std::optional<std::uint64_t>>()};
  encode(part.message, made.head);
  if (auto section = sender_.encode({&made.payload, 1}, codec, policy)) {
    made.codec = static_cast<std::uint8_t>(codec.lossless.kind);
    made.shuffle_width = codec.shuffle_width;
    made.payload = TensorView::of_bytes(section->bytes);
    made.keep = std::move(section->keep);
  }
  return part.encoded.emplace_back(std::move(made));
}

Status Broadcast::send(Parts& parts, const Learner::State& state, std::uint64_t first_float,
                       PartCodecs codecs, FrameSender& link, PayloadStats& stats) {
  const Duration before = sender_.stats().busy;
  for (std::size_t number = 0; number < parts.parts.size(); ++number) {
    Part& part = parts.parts[number];
    if (part.message.first_float < first_float) continue;
    const Encoded& made = encoded(part, number, codecs, link);
    stats.raw_bytes += part.raw_bytes;
    stats.wire_bytes += made.payload.byte_count();
    W5XDE_CHECK(link.send({.type = FrameType::parameters,
                           .codec = made.codec,
                           .shuffle_width = made.shuffle_width,
                           .head = made.head,
                           .payload = {&made.payload, 1},
                           .keep = made.keep ? made.keep : state,
                           .checksum = made.checksum}));
  }
  stats.busy += sender_.stats().busy - before;
  return {};
}

// What changed in this range since what is shown, and what nodes will make of it.
Broadcast::Part Broadcast::difference_of(const Learner::State& state, FloatRange range) {
  const std::uint64_t parameters = std::min(range.end(), shape_.parameters->floats());
  const auto now = floats_of(*state, range), before = floats_of(*shown_, range);
  const std::uint64_t changed = parameters - std::min(range.first, parameters);
  change_.resize(range.count);
  for (std::uint64_t i = 0; i < changed; ++i) change_[i] = now[i] - before[i];
  std::ranges::copy(now.subspan(changed), change_.begin() + static_cast<std::ptrdiff_t>(changed));
  Part part{.message = message_of(*next_difference_, range), .raw_bytes = range.count * sizeof(float)};
  if (range.count < shape_.floats) {
    part.formed = form_part(change_, shape_, range, next_difference_->codec);
  } else {
    // What the codec loses is in the next difference anyway.
    part.formed = encoder_.encode_fresh(change_, next_difference_->codec);
  }
  part.message.coding = part.formed.coding;
  const Target target{std::as_writable_bytes(std::span(change_)), part.message.tensors, &shape_, range.first};
  (void)unform(part.formed.bytes, part.formed.coding, target);  // it was made right here
  const auto shown = floats_of(*next_shown_, range);
  for (std::uint64_t i = 0; i < changed; ++i) shown[i] = before[i] + change_[i];
  std::copy(change_.begin() + static_cast<std::ptrdiff_t>(changed), change_.end(),
            shown.begin() + static_cast<std::ptrdiff_t>(changed));
  return part;
}

void Broadcast::extend_difference(const Learner::State& state, std::uint64_t to, std::uint64_t floats_end) {
  if (!next_difference_) {
    next_difference_.emplace(Parts{.from = shown_version_, .to = to, .codec = codec_});
    next_shown_ = free_memory();
  }
  Parts& difference = *next_difference_;
  const std::uint64_t part_floats = difference.codec.by_chunks() ? options_.part_floats : 0;
  while (difference.floats() < floats_end) {
    const FloatRange range = part_at(difference.floats(), part_floats, shape_);
    if (range.end() > floats_end) return;
    difference.parts.push_back(difference_of(state, range));
  }
}

void Broadcast::finish_difference() {
  shown_version_ = next_difference_->to;
  other_ = std::exchange(shown_, std::exchange(next_shown_, nullptr));
  difference_bytes_ += next_difference_->bytes();
  differences_.push_back(std::move(*next_difference_));
  next_difference_.reset();
  // A node that is further behind gets a whole version, which is less.
  while (differences_.size() > 1 && difference_bytes_ > shape_.floats * sizeof(float)) {
    difference_bytes_ -= differences_.front().bytes();
    differences_.pop_front();
  }
}

void Broadcast::show(const Learner& learner) {
  if (!coded() || shown_version_ == learner.version()) return;
  // Some have this version as a codec left it: differences begin with the next.
  if (!shown_ && learner.version() == inexact_version_) return;
  // Whoever has this version has it exactly.
  if (!shown_) return restore({}, learner);
  extend_difference(learner.state(), learner.version(), shape_.floats);
  finish_difference();
}

bool Broadcast::follows(std::uint64_t version, const Learner& learner) const {
  if (version == kNoVersion) return false;
  return !coded() || version == learner.version() ||
         std::ranges::find(differences_, version, &Parts::from) != differences_.end();
}

Status Broadcast::send(const Learner& learner, SentVersion& sent, PartCodecs codecs, FrameSender& link,
                       PayloadStats& stats) {
  show(learner);
  const SentVersion before = std::exchange(sent, {.version = learner.version()});
  const std::uint64_t bytes_before = stats.wire_bytes;
  const auto first = std::ranges::find(differences_, before.version, &Parts::from);
  std::uint64_t bytes = 0;
  for (auto each = first; each != differences_.end(); ++each) bytes += each->bytes();
  const bool differs = first != differences_.end() && bytes < shape_.floats * sizeof(float);
  // What was sent ahead it has already, if it was of this kind.
  const bool has_some = before.version + 1 == learner.version() && before.next_is_difference == differs;
  const std::uint64_t had = has_some ? before.next_floats : 0;
  if (differs) {
    for (auto each = first; each != differences_.end(); ++each)
      W5XDE_CHECK(send(*each, nullptr, each == first ? had : 0, codecs, link, stats));
  } else {
    const Learner::State& state = coded() && shown_ ? shown_ : learner.state();
    W5XDE_CHECK(send(whole(state, learner.version(), shape_.floats), state, had, codecs, link, stats));
  }
  if (before.version != kNoVersion && before.version + 1 == learner.version()) {
    const auto taken =
        static_cast<double>(stats.wire_bytes - bytes_before + (had > 0 ? before.next_bytes : 0));
    usual_bytes_ += (usual_bytes_ == 0 ? 1 : kSmoothing) * (taken - usual_bytes_);
  }
  return {};
}

Status Broadcast::send_ahead(const Learner& learner, SentVersion& sent, PartCodecs codecs, FrameSender& link,
                             PayloadStats& stats) {
  if (sent.version != learner.version() || !learner.next() || !codec_.by_chunks()) return {};
  // Differences begin with a version that was shown when it was whole.
  if (coded() && shown_version_ != learner.version()) return {};
  const bool differs = coded() || next_difference_;
  if (differs) extend_difference(learner.next(), learner.version() + 1, learner.stepped());
  Parts& parts =
      differs ? *next_difference_ : whole(learner.next(), learner.version() + 1, learner.stepped());
  const std::uint64_t had = sent.next_is_difference == differs ? sent.next_floats : 0;
  sent.next_floats = parts.floats();
  sent.next_is_difference = differs;
  const std::uint64_t bytes_before = stats.wire_bytes;
  W5XDE_CHECK(send(parts, learner.next(), had, codecs, link, stats));
  sent.next_bytes = (had > 0 ? sent.next_bytes : 0) + stats.wire_bytes - bytes_before;
  return {};
}

}  // namespace w5xde
