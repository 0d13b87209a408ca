#include "net/payload_form.h"

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

Status unform_block(Bytes formed, const Coding& coding, const Target& target) {
  const std::uint64_t parameters = target.block->parameters->floats();
  const std::uint64_t buffer_bytes = (target.block->floats - parameters) * sizeof(float);
  if (formed.size() < buffer_bytes) return corrupt("a coded block without its buffers");
  const std::span<float> floats(reinterpret_cast<float*>(target.raw.data()), target.block->floats);
  W5XDE_CHECK(decode_gradient(formed.first(formed.size() - buffer_bytes), gradient_codec_of(coding),
                              *target.block->parameters, floats.first(parameters)));
  std::ranges::copy(formed.last(buffer_bytes), std::as_writable_bytes(floats.subspan(parameters)).begin());
  return {};
}

}  // namespace

Formed form_generic(std::span<const TensorView> tensors) {
  std::vector<GenericTensor> generic;
  for (const TensorView& tensor : tensors) generic.push_back({"", tensor});
  auto bytes = std::make_shared<std::vector<std::byte>>();
  encode_generic_tensors(generic, *bytes);
  return {{.form = Form::generic, .bytes = bytes->size()}, std::move(bytes)};
}

BlockEncoder::BlockEncoder(BlockShape shape, float momentum)
    : shape_(std::move(shape)), gradients_({}, shape_.parameters, momentum) {}

Formed BlockEncoder::encode(std::span<const float> block, const GradientCodec& codec, bool same_step) {
  if (codec != codec_) gradients_.set_codec(codec);
  codec_ = codec;
  const std::uint64_t parameters = shape_.parameters->floats();
  const Bytes buffers = std::as_bytes(block.subspan(parameters));
  auto bytes = std::make_shared<std::vector<std::byte>>();
  // Straight to where it is sent from.
  bytes->resize(encoded_bytes_max(codec, *shape_.parameters));
  bytes->resize(gradients_.encode_into(*bytes, block.first(parameters), same_step).size());
  bytes->insert(bytes->end(), buffers.begin(), buffers.end());
  return {{.form = Form::gradient,
           .gradient_kind = static_cast<std::uint8_t>(codec.kind),
           .rank = codec.rank,
           .bytes = bytes->size()},
          std::move(bytes)};
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
          .shuffle_width = form.section.shuffle_width};
}

Result<AnswerForm> form_of(const AnswerCoding& coding) {
  AnswerForm form{.form = coding.form, .automatic = coding.lossless == kAutomatic};
  if ((!is_known(coding.lossless) && !form.automatic) || !is_shuffle_width(coding.shuffle_width))
    return corrupt(fmt::format("codec {} is not known", coding.lossless));
  if (!form.automatic) form.section.lossless = {static_cast<LosslessKind>(coding.lossless), coding.level};
  form.section.shuffle_width = coding.shuffle_width;
  if (coding.form != Form::gradient) return form;
  form.gradient = {.kind = static_cast<GradientKind>(coding.gradient_kind),
                   .density = static_cast<double>(coding.density),
                   .rank = coding.rank};
  // The codec's own reader knows what makes one.
  if (form.gradient.kind > GradientKind::powersgd || !parse_gradient_codec(to_string(form.gradient)).ok())
    return corrupt(fmt::format("gradient codec {} is not known", coding.gradient_kind));
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
      const std::uint64_t buffers = target.block->floats - target.block->parameters->floats();
      return encoded_bytes_max(gradient_codec_of(coding), *target.block->parameters) +
             buffers * sizeof(float);
    }
  }
  return 0;
}

Status unform(Bytes formed, const Coding& coding, const Target& target) {
  return coding.form == Form::generic ? unform_generic(formed, target) : unform_block(formed, coding, target);
}

}  // namespace w5xde
