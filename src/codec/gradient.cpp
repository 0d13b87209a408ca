#include "codec/gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "codec/gradient_stages.h"

namespace w5xde {

namespace {

constexpr double kDensityUsual = 0.01;
constexpr std::uint32_t kRankUsual = 4, kLowRankMax = 256;

struct Name {
  GradientKind kind;
  std::string_view text;
};
constexpr Name kNames[] = {{GradientKind::none, "none"},        {GradientKind::fp16, "fp16"},
                           {GradientKind::bf16, "bf16"},        {GradientKind::int8, "int8"},
                           {GradientKind::onebit, "onebit"},    {GradientKind::topk, "topk"},
                           {GradientKind::powersgd, "powersgd"}};

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

}  // namespace

Result<GradientCodec> parse_gradient_codec(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto* name = std::ranges::find(kNames, text.substr(0, colon), &Name::text);
  if (name == std::end(kNames)) {
    return invalid(
        "'{}' is not a gradient codec; use none, fp16, bf16, int8, onebit, topk:DENSITY or powersgd:RANK",
        text);
  }
  GradientCodec codec{.kind = name->kind};
  if (codec.kind == GradientKind::topk) codec.density = kDensityUsual;
  if (codec.kind == GradientKind::powersgd) codec.rank = kRankUsual;
  if (colon == std::string_view::npos) return codec;
  const std::string_view number = text.substr(colon + 1);
  if (codec.kind == GradientKind::topk && read_number(number, codec.density) && codec.density > 0 &&
      codec.density <= 1) {
    return codec;
  }
  if (codec.kind == GradientKind::powersgd && read_number(number, codec.rank) && codec.rank >= 1 &&
      codec.rank <= kLowRankMax) {
    return codec;
  }
  return invalid("'{}': topk takes a density above 0 and up to 1, powersgd a rank of 1 to {}, others nothing",
                 text, kLowRankMax);
}

std::string to_string(const GradientCodec& codec) {
  const auto* name = std::ranges::find(kNames, codec.kind, &Name::kind);
  if (codec.kind == GradientKind::topk) return fmt::format("{}:{}", name->text, codec.density);
  if (codec.kind == GradientKind::powersgd) return fmt::format("{}:{}", name->text, codec.rank);
  return std::string(name->text);
}

namespace {

std::size_t topk_count(const GradientCodec& codec, const BlockLayout& layout) {
  if (codec.density >= 1) return layout.floats();  // all of it, whatever it is
  const double wanted = std::ceil(codec.density * static_cast<double>(layout.parameters()));
  return std::min(static_cast<std::size_t>(layout.floats()), static_cast<std::size_t>(wanted));
}

}  // namespace

std::uint64_t chunked_bytes(const GradientCodec& codec, std::uint64_t floats) {
  assert(codec.by_chunks());
  return gradient::quantized_bytes(codec.kind, floats);
}

std::uint64_t encoded_bytes_max(const GradientCodec& codec, const BlockLayout& layout) {
  if (codec.kind == GradientKind::topk)
    return gradient::topk_bytes_max(layout.floats(), topk_count(codec, layout));
  if (codec.kind == GradientKind::powersgd) return gradient::powersgd_bytes(layout, codec.rank);
  if (codec.kind > kGradientKindLast) return 0;  // a peer's word, and no codec
  return gradient::quantized_bytes(codec.kind, layout.floats());
}

std::uint64_t encoded_bytes_usual(const GradientCodec& codec, const BlockLayout& layout) {
  const std::uint64_t most = encoded_bytes_max(codec, layout);
  if (codec.kind != GradientKind::topk || layout.floats() == 0) return most;
  const auto count = static_cast<double>(topk_count(codec, layout));
  const double other = 1 - count / static_cast<double>(layout.floats());
  // A gap takes a byte, another from 2^7 on, a third from 2^14 on, …
  double gap_bytes = 1;
  for (double from = 128; from < static_cast<double>(layout.floats()); from *= 128)
    gap_bytes += std::pow(other, from);
  const double bytes = sizeof(std::uint32_t) + count * (sizeof(float) + gap_bytes);
  return std::min(most, static_cast<std::uint64_t>(bytes));
}

void encode_chunks(std::span<const float> values, const GradientCodec& codec, MutableBytes out) {
  assert(out.size() == chunked_bytes(codec, values.size()));
  gradient::quantize(values, codec.kind, out.data());
}

Status decode_chunks(Bytes encoded, const GradientCodec& codec, std::span<float> values) {
  if (!codec.by_chunks()) return corrupt("a part of what has none");
  return gradient::dequantize(encoded, codec.kind, values);
}

struct GradientEncoder::State {
  GradientCodec codec;
  std::shared_ptr<const BlockLayout> layout;
  float momentum;
  // The residual, and the velocity after it: as they are, and where the next are made.
  std::vector<float> feedback, next_feedback;
  bool can_take_back = false;  // next_feedback is what feedback was before the last gradient
  gradient::TopK top;
  gradient::PowerSgd power;
  AlignedBuffer out;

  std::size_t feedback_floats() const;
  gradient::Feedback block(std::size_t index);
  bool gather(std::span<const float> gradient, bool same_step);
  std::size_t encode_topk(std::byte* to, bool finite);
  std::size_t encode_with_feedback(std::span<const float> gradient, std::byte* to, bool same_step);
};

// As many as the codec needs. A stateless one needs none, but what is there waits for one that does.
std::size_t GradientEncoder::State::feedback_floats() const {
  const std::size_t floats = layout->floats();
  if (codec.stateless()) return std::min(feedback.size(), floats);
  return codec.kind == GradientKind::topk && momentum > 0 ? 2 * floats : floats;
}

GradientEncoder::GradientEncoder(const GradientCodec& codec, std::shared_ptr<const BlockLayout> layout,
                                 float momentum)
    : state_(new State{.layout = std::move(layout), .momentum = momentum}) {
  set_codec(codec);
}

GradientEncoder::~GradientEncoder() = default;
GradientEncoder::GradientEncoder(GradientEncoder&&) noexcept = default;
GradientEncoder& GradientEncoder::operator=(GradientEncoder&&) noexcept = default;

void GradientEncoder::set_codec(const GradientCodec& codec) {
  state_->codec = codec;
  state_->feedback.resize(state_->feedback_floats());
}

gradient::Feedback GradientEncoder::State::block(std::size_t index) {
  const std::size_t floats = layout->floats();
  return {std::span(feedback).subspan(index * floats, floats),
          std::span(next_feedback).subspan(index * floats, floats)};
}

// topk: the sum to send, with this gradient; false when it is NaN or infinite.
bool GradientEncoder::State::gather(std::span<const float> gradient, bool same_step) {
  if (feedback.size() == layout->floats()) return gradient::add(gradient, block(0));
  if (!same_step) return gradient::add_with_momentum(gradient, momentum, block(1), block(0));
  const bool finite = gradient::add(gradient, block(1));
  return gradient::add(gradient, block(0)) && finite;
}

// What is sent leaves the feedback, its velocity too: otherwise it would push on where the others have gone.
std::size_t GradientEncoder::State::encode_topk(std::byte* to, bool finite) {
  const gradient::Feedback residual = block(0);
  if (!finite) {
    constexpr float kNan[] = {std::numeric_limits<float>::quiet_NaN()};
    constexpr std::uint32_t kFirst[] = {0};
    return gradient::encode_topk(kNan, kFirst, to);
  }
  const auto places = top.find(residual.left, topk_count(codec, *layout));
  const std::size_t bytes = gradient::encode_topk(residual.left, places, to);
  for (const std::uint32_t place : places) residual.left[place] = 0;
  if (feedback.size() > layout->floats()) {
    for (const std::uint32_t place : places) block(1).left[place] = 0;
  }
  return bytes;
}

std::size_t GradientEncoder::State::encode_with_feedback(std::span<const float> gradient, std::byte* to,
                                                         bool same_step) {
  next_feedback.resize(feedback.size());
  std::size_t bytes = encoded_bytes_max(codec, *layout);
  bool finite = true;
  if (codec.kind == GradientKind::topk) {
    finite = gather(gradient, same_step);
    bytes = encode_topk(to, finite);
  } else if (codec.kind == GradientKind::powersgd) {
    finite = power.encode(gradient, *layout, codec.rank, block(0), to);
  } else {
    finite = gradient::quantize_with_feedback(gradient, codec.kind, block(0), to);
    if (codec.kind == GradientKind::onebit) layout->clear_padding(next_feedback);  // a sign cannot say zero
  }
  // NaN or infinity must be reported now, and not come back with every later gradient.
  if (finite) std::swap(feedback, next_feedback);
  can_take_back = finite;
  return bytes;
}

Bytes GradientEncoder::encode(std::span<const float> gradient, bool same_step) {
  return encode_into(state_->out.take(encoded_bytes_max(state_->codec, *state_->layout)), gradient,
                     same_step);
}

Bytes GradientEncoder::encode_into(MutableBytes out, std::span<const float> gradient, bool same_step) {
  State& state = *state_;
  state.can_take_back = false;
  assert(gradient.size() == state.layout->floats());
  assert(out.size() >= encoded_bytes_max(state.codec, *state.layout));
  if (state.codec.stateless()) return encode_fresh_into(out, gradient);
  return out.first(state.encode_with_feedback(gradient, out.data(), same_step));
}

std::span<const float> GradientEncoder::feedback() const {
  return state_->feedback;
}

Bytes GradientEncoder::encode_fresh_into(MutableBytes out, std::span<const float> gradient) {
  State& state = *state_;
  if (state.codec.by_chunks()) {
    const MutableBytes filled = out.first(chunked_bytes(state.codec, gradient.size()));
    encode_chunks(gradient, state.codec, filled);
    return filled;
  }
  if (state.codec.kind == GradientKind::topk) {
    const auto places = state.top.find(gradient, topk_count(state.codec, *state.layout));
    return out.first(gradient::encode_topk(gradient, places, out.data()));
  }
  const Bytes filled = encode_into(out, gradient);
  std::ranges::fill(state.feedback, 0.0F);
  return filled;
}

void GradientEncoder::add_feedback(std::span<const float> feedback) {
  const std::size_t floats = state_->layout->floats();
  assert(feedback.empty() || feedback.size() == floats || feedback.size() == 2 * floats);
  if (state_->feedback.empty() && !feedback.empty()) state_->feedback.resize(floats);
  const auto add_to = [&](std::vector<float>& mine) {
    const std::size_t count = std::min(mine.size(), feedback.size());
    for (std::size_t i = 0; i < count; ++i) {
      const float sum = mine[i] + feedback[i];
      mine[i] = std::isfinite(sum) ? sum : mine[i];
    }
  };
  add_to(state_->feedback);
  if (state_->can_take_back) add_to(state_->next_feedback);
}

void GradientEncoder::take_back() {
  if (!std::exchange(state_->can_take_back, false)) return;
  state_->next_feedback.resize(state_->feedback.size());
  std::swap(state_->feedback, state_->next_feedback);
}

std::vector<float> GradientEncoder::last_change() const {
  if (!state_->can_take_back) return {};
  // Before the first gradient there was nothing, which is zeros.
  std::vector<float> change(state_->feedback.size());
  const std::size_t before = std::min(change.size(), state_->next_feedback.size());
  std::copy_n(state_->next_feedback.begin(), before, change.begin());
  for (std::size_t i = 0; i < change.size(); ++i) change[i] -= state_->feedback[i];
  return change;
}

Status decode_gradient(Bytes encoded, const GradientCodec& codec, const BlockLayout& layout,
                       std::span<float> gradient) {
  assert(gradient.size() == layout.floats());
  if (codec.kind == GradientKind::topk) {
    W5XDE_CHECK(gradient::decode_topk(encoded, gradient));
  } else if (codec.kind == GradientKind::powersgd) {
    W5XDE_CHECK(gradient::decode_powersgd(encoded, layout, codec.rank, gradient));
  } else if (codec.kind > kGradientKindLast) {
    return corrupt("a gradient through an unknown codec");
  } else {
    W5XDE_CHECK(gradient::dequantize(encoded, codec.kind, gradient));
  }
  layout.clear_padding(gradient);
  return {};
}

}  // namespace w5xde
