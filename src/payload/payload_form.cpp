#include "payload/payload_form.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/shuffle.h"
#include "wire/generic_tensors.h"

namespace w5xde {

namespace {

// Of an answer's lossless codec: whichever pays. No codec will have this number.
constexpr std::uint8_t kAutomatic = 255;

// MessagePack says a number in nine bytes at most.
constexpr std::uint64_t kGenericNumberBytesMax = 9;
constexpr std::uint64_t kGenericTensorBytesMax = 512;

Status unform_generic(Bytes formed, const Target& target) {
  const Limits limits{.payload_bytes_max = payload_bytes_of(target.tensors)};
  W5XDE_TRY(const DecodedTensors decoded, decode_generic_tensors(formed, limits));
  if (decoded.tensors != target.tensors) return corrupt("other tensors than the head announces");
  std::ranges::copy(decoded.payload, target.raw.begin());
  return {};
}

// How many of a range's floats are parameters; the rest are buffers.
std::uint64_t parameters_in(FloatRange range, const BlockShape& shape) {
  const std::uint64_t parameters = shape.parameters->floats();
  return std::min(range.end(), parameters) - std::min(range.first, parameters);
}

bool is_whole(FloatRange range, const BlockShape& shape) {
  return range.first == 0 && range.count == shape.floats;
}

Status unform_block(Bytes formed, const Coding& coding, const Target& target) {
  const FloatRange range = target.range();
  const std::uint64_t parameters = parameters_in(range, *target.block);
  const std::uint64_t buffer_bytes = (range.count - parameters) * sizeof(float);
  if (formed.size() < buffer_bytes) return corrupt("a coded block without its buffers");
  const std::span<float> floats(reinterpret_cast<float*>(target.raw.data()), range.count);
  const Bytes coded = formed.first(formed.size() - buffer_bytes);
  const GradientCodec codec = gradient_codec_of(coding);
  W5XDE_CHECK(is_whole(range, *target.block)
                  ? decode_gradient(coded, codec, *target.block->parameters, floats.first(parameters))
                  : decode_chunks(coded, codec, floats.first(parameters)));
  std::ranges::copy(formed.last(buffer_bytes), std::as_writable_bytes(floats.subspan(parameters)).begin());
  return {};
}

}  // namespace

Formed form_generic(std::span<const TensorView> tensors) {
  std::vector<GenericTensor> generic;
  for (const TensorView& tensor : tensors) generic.push_back({"", tensor});
  auto bytes = std::make_shared<std::vector<std::byte>>();
  encode_generic_tensors(generic, *bytes);
  return {{.form = Form::generic, .bytes = bytes->size()}, *bytes, bytes};
}

FloatRange part_at(std::uint64_t first, std::uint64_t part_floats, const BlockShape& shape) {
  const std::uint64_t left = shape.floats - first;
  return {first, part_floats == 0 ? left : std::min(part_floats, left)};
}

Formed part_of(const Formed& whole, const BlockShape& shape, FloatRange range) {
  const GradientCodec codec = gradient_codec_of(whole.coding);
  // Buffers come after the last parameter's bytes.
  const auto bytes_before = [&](std::uint64_t floats) {
    const std::uint64_t parameters = std::min(floats, shape.parameters->floats());
    return chunked_bytes(codec, parameters) + (floats - parameters) * sizeof(float);
  };
  const std::uint64_t begin = bytes_before(range.first);
  Formed part{whole.coding, whole.bytes.subspan(begin, bytes_before(range.end()) - begin), whole.keep};
  part.coding.bytes = part.bytes.size();
  return part;
}

Formed form_part(std::span<const float> floats, const BlockShape& shape, FloatRange range,
                 const GradientCodec& codec) {
  const std::uint64_t parameters = parameters_in(range, shape);
  const std::uint64_t coded = chunked_bytes(codec, parameters);
  auto bytes = std::make_shared<std::vector<std::byte>>(coded + (range.count - parameters) * sizeof(float));
  encode_chunks(floats.first(parameters), codec, std::span(*bytes).first(coded));
  std::ranges::copy(std::as_bytes(floats.subspan(parameters)), std::span(*bytes).subspan(coded).begin());
  return {{.form = Form::gradient,
           .gradient_kind = static_cast<std::uint8_t>(codec.kind),
           .rank = codec.rank,
           .bytes = bytes->size()},
          *bytes,
          bytes};
}

BlockEncoder::BlockEncoder(BlockShape shape, float momentum)
    : shape_(std::move(shape)), gradients_({}, shape_.parameters, momentum) {}

Formed BlockEncoder::encode(std::span<const float> block, const GradientCodec& codec, bool same_step) {
  return encode_with(block, codec, [&](MutableBytes out, std::span<const float> parameters) {
    return gradients_.encode_into(out, parameters, same_step);
  });
}

Formed BlockEncoder::encode_fresh(std::span<const float> block, const GradientCodec& codec) {
  return encode_with(block, codec, [&](MutableBytes out, std::span<const float> parameters) {
    return gradients_.encode_fresh_into(out, parameters);
  });
}

template <class Encode>
Formed BlockEncoder::encode_with(std::span<const float> block, const GradientCodec& codec,
                                 const Encode& encode) {
  if (codec != codec_) gradients_.set_codec(codec);
  codec_ = codec;
  const std::uint64_t parameters = shape_.parameters->floats();
  const Bytes buffers = std::as_bytes(block.subspan(parameters));
  auto bytes = std::make_shared<std::vector<std::byte>>();
  // Straight to where it is sent from.
  bytes->resize(encoded_bytes_max(codec, *shape_.parameters));
  bytes->resize(encode(*bytes, block.first(parameters)).size());
  bytes->insert(bytes->end(), buffers.begin(), buffers.end());
  return {{.form = Form::gradient,
           .gradient_kind = static_cast<std::uint8_t>(codec.kind),
           .rank = codec.rank,
           .bytes = bytes->size()},
          *bytes,
          bytes};
}

GradientCodec gradient_codec_of(const Coding& coding) {
  // How sparse it is shows in the bytes.
  return {.kind = static_cast<GradientKind>(coding.gradient_kind), .density = 1, .rank = coding.rank};
}

AnswerCoding coding_of(const AnswerForm& form) {
  return {.form = form.form,
          .gradient_kind = static_cast<std::uint8_t>(form.gradient.kind),
          .rank = form.gradient.rank,
          .density = static_cast<float>(form.gradient.density),
          .lossless = form.automatic ? kAutomatic : static_cast<std::uint8_t>(form.section.lossless.kind),
          .level = form.section.lossless.level,
          .shuffle_width = form.section.shuffle_width,
          .part_floats = form.part_floats};
}

Result<AnswerForm> form_of(const AnswerCoding& coding) {
  AnswerForm form{
      .form = coding.form, .automatic = coding.lossless == kAutomatic, .part_floats = coding.part_floats};
  if ((!is_known(coding.lossless) && !form.automatic) || !is_shuffle_width(coding.shuffle_width))
    return corrupt(fmt::format("codec {} is not known", coding.lossless));
  if (!form.automatic) form.section.lossless = {static_cast<LosslessKind>(coding.lossless), coding.level};
  form.section.shuffle_width = coding.shuffle_width;
  if (coding.form == Form::generic && coding.part_floats > 0) return corrupt("parts of a generic payload");
  if (coding.form != Form::gradient) return form;
  form.gradient = {.kind = static_cast<GradientKind>(coding.gradient_kind),
                   .density = static_cast<double>(coding.density),
                   .rank = coding.rank};
  // The codec's own reader knows what makes one.
  if (form.gradient.kind > GradientKind::powersgd || !parse_gradient_codec(to_string(form.gradient)).ok())
    return corrupt(fmt::format("gradient codec {} is not known", coding.gradient_kind));
  if (form.part_floats > 0 && (!form.gradient.by_chunks() || form.part_floats % kGradientChunk != 0))
    return corrupt(fmt::format("parts of {} floats of {}", form.part_floats, to_string(form.gradient)));
  return form;
}

std::uint64_t formed_bytes_max(const Coding& coding, const Target& target) {
  switch (coding.form) {
    case Form::direct:
      return target.raw.size();
    case Form::generic: {
      std::uint64_t bytes = kGenericTensorBytesMax;
      for (const TensorDescriptor& tensor : target.tensors)
        bytes += kGenericTensorBytesMax + kGenericNumberBytesMax * tensor.shape.elements();
      return bytes;
    }
    case Form::gradient: {
      if (target.block == nullptr) return 0;
      const FloatRange range = target.range();
      const std::uint64_t parameters = parameters_in(range, *target.block);
      const std::uint64_t buffers = (range.count - parameters) * sizeof(float);
      const GradientCodec codec = gradient_codec_of(coding);
      if (is_whole(range, *target.block))
        return encoded_bytes_max(codec, *target.block->parameters) + buffers;
      return codec.by_chunks() ? chunked_bytes(codec, parameters) + buffers : 0;
    }
  }
  return 0;
}

Status unform(Bytes formed, const Coding& coding, const Target& target) {
  return coding.form == Form::generic ? unform_generic(formed, target) : unform_block(formed, coding, target);
}

}  // namespace w5xde
