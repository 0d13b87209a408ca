#include "codec/gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

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
    return invalid(fmt::format(
        "'{}' is no gradient codec; use none, fp16, bf16, int8, onebit, topk:DENSITY or powersgd:RANK",
        text));
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
  return invalid(fmt::format(
      "'{}': topk takes a density above 0 and up to 1, powersgd a rank of 1 to {}, others nothing", text,
      kLowRankMax));
}

std::string to_string(const GradientCodec& codec) {
  const auto* name = std::ranges::find(kNames, codec.kind, &Name::kind);
  if (codec.kind == GradientKind::topk) return fmt::format("{}:{}", name->text, codec.density);
  if (codec.kind == GradientKind::powersgd) return fmt::format("{}:{}", name->text, codec.rank);
  return std::string(name->text);
}

struct GradientEncoder::State {
  GradientCodec codec;
  std::shared_ptr<const BlockLayout> layout;
  float momentum;
  std::vector<float> residual;  // what was not said
  std::vector<float> velocity;  // topk: gathers momentum where nothing is said
  std::vector<float> directions;
  std::vector<float> decoded;
  gradient::TopK top;
  gradient::Out out;

  void encode_stage(std::span<const float> values);
  Bytes encode_topk(std::span<const float> gradient);
};

GradientEncoder::GradientEncoder(const GradientCodec& codec, std::shared_ptr<const BlockLayout> layout,
                                 float momentum)
    : state_(new State{.codec = codec, .layout = std::move(layout), .momentum = momentum}) {
  const std::uint64_t floats = state_->layout->floats();
  if (!codec.stateless()) state_->residual.resize(floats);
  if (codec.kind == GradientKind::topk && momentum > 0) state_->velocity.resize(floats);
}

GradientEncoder::~GradientEncoder() = default;
GradientEncoder::GradientEncoder(GradientEncoder&&) noexcept = default;
GradientEncoder& GradientEncoder::operator=(GradientEncoder&&) noexcept = default;

void GradientEncoder::State::encode_stage(std::span<const float> values) {
  switch (codec.kind) {
    case GradientKind::none: {
      const Bytes bytes = std::as_bytes(values);
      out.assign(bytes.begin(), bytes.end());
      break;
    }
    case GradientKind::fp16:
      return gradient::encode_fp16(values, out);
    case GradientKind::bf16:
      return gradient::encode_bf16(values, out);
    case GradientKind::int8:
      return gradient::encode_int8(values, out);
    case GradientKind::onebit:
      return gradient::encode_onebit(values, out);
    case GradientKind::powersgd:
      return gradient::encode_powersgd(values, *layout, codec.rank, directions, out);
    case GradientKind::topk:
      break;
  }
}

// What is said is forgotten, velocity too: it would push on where the others have already gone.
Bytes GradientEncoder::State::encode_topk(std::span<const float> gradient) {
  if (velocity.empty()) {
    for (std::size_t i = 0; i < residual.size(); ++i) residual[i] += gradient[i];
  } else {
    for (std::size_t i = 0; i < residual.size(); ++i) {
      velocity[i] = momentum * velocity[i] + gradient[i];
      residual[i] += velocity[i];
    }
  }
  const double wanted = std::ceil(codec.density * static_cast<double>(layout->parameters()));
  const auto count = std::min(residual.size(), static_cast<std::size_t>(wanted));
  gradient::encode_topk(residual, count, top, out);
  for (const std::uint32_t at : top.chosen) residual[at] = 0;
  if (!velocity.empty()) {
    for (const std::uint32_t at : top.chosen) velocity[at] = 0;
  }
  return out;
}

Bytes GradientEncoder::encode(std::span<const float> gradient) {
  State& state = *state_;
  state.out.clear();
  if (state.codec.stateless()) {
    state.encode_stage(gradient);
    return state.out;
  }
  // What is no number must be heard of now, and not come back with every gradient from here on.
  const bool finite = std::ranges::all_of(gradient, [](float value) { return std::isfinite(value); });
  if (!finite) {
    const std::vector<float> nan(gradient.size(), std::numeric_limits<float>::quiet_NaN());
    if (state.codec.kind == GradientKind::topk) {
      gradient::encode_topk(nan, std::min<std::size_t>(1, nan.size()), state.top, state.out);
    } else {
      state.encode_stage(nan);
      state.directions.clear();
    }
    return state.out;
  }
  if (state.codec.kind == GradientKind::topk) return state.encode_topk(gradient);
  for (std::size_t i = 0; i < gradient.size(); ++i) state.residual[i] += gradient[i];
  state.encode_stage(state.residual);
  state.decoded.resize(gradient.size());
  // It was made right here.
  (void)decode_gradient(state.out, state.codec, *state.layout, state.decoded);
  for (std::size_t i = 0; i < gradient.size(); ++i) state.residual[i] -= state.decoded[i];
  return state.out;
}

std::span<const float> GradientEncoder::feedback() const {
  return state_->residual;
}

void GradientEncoder::add_feedback(std::span<const float> feedback) {
  state_->residual.resize(state_->layout->floats());
  for (std::size_t i = 0; i < state_->residual.size(); ++i) state_->residual[i] += feedback[i];
}

void GradientEncoder::forget() {
  std::ranges::fill(state_->residual, 0.0f);
  std::ranges::fill(state_->velocity, 0.0f);
}

void GradientEncoder::set_codec(const GradientCodec& codec) {
  state_->codec = codec;
  const std::uint64_t floats = state_->layout->floats();
  if (!codec.stateless()) state_->residual.resize(floats);
  if (codec.kind == GradientKind::topk && state_->momentum > 0) state_->velocity.resize(floats);
}

std::uint64_t encoded_bytes_max(const GradientCodec&, const BlockLayout& layout) {
  return layout.floats() * 9 + 4096;
}

Status decode_gradient(Bytes encoded, const GradientCodec& codec, const BlockLayout& layout,
                       std::span<float> gradient) {
  switch (codec.kind) {
    case GradientKind::none:
      if (encoded.size() != gradient.size_bytes()) return corrupt("a gradient of another length");
      std::ranges::copy(encoded, std::as_writable_bytes(gradient).begin());
      return {};
    case GradientKind::fp16:
      return gradient::decode_fp16(encoded, gradient);
    case GradientKind::bf16:
      return gradient::decode_bf16(encoded, gradient);
    case GradientKind::int8:
      return gradient::decode_int8(encoded, gradient);
    case GradientKind::onebit:
      W5XDE_CHECK(gradient::decode_onebit(encoded, gradient));
      layout.clear_padding(gradient);  // a sign cannot say zero
      return {};
    case GradientKind::topk:
      return gradient::decode_topk(encoded, gradient);
    case GradientKind::powersgd:
      return gradient::decode_powersgd(encoded, layout, codec.rank, gradient);
  }
  return corrupt("a gradient codec that is none");
}

}  // namespace w5xde
