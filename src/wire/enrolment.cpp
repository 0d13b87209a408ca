#include "wire/enrolment.h"

#include "base/errors.h"
#include "wire/map_fields.h"

namespace w5xde {

namespace {

constexpr auto kSampleField = [](auto& field, auto& sample) {
  field("name", sample.name);
  field("dtype", sample.dtype);
  field("shape", sample.shape);
  field("pixels", sample.pixels);
  field("ids", sample.ids);
};

constexpr auto kPreparation = [](auto& field, auto& preparation) {
  field.numbers("mean", preparation.mean, kChannelsMax);
  field.numbers("deviation", preparation.deviation, kChannelsMax);
  field("crop_pixels", preparation.crop_pixels);
  field("flip", preparation.flip);
};

constexpr auto kOffer = [](auto& field, auto& offer) {
  field("run", offer.run);
  field("model", offer.model);
  field("model_hash", offer.model_hash);
  field("model_bytes", offer.model_bytes);
  field("loss", offer.loss);
  field.maps("inputs", offer.inputs, kSampleField, kInputsMax);
  field.map("targets", offer.targets, kSampleField);
  field("classes", offer.classes);
  field("ignore_index", offer.ignore_index);
  field.map("preparation", offer.preparation, kPreparation);
  field("threads", offer.threads);
  field("compute", offer.compute);
  field("model_fingerprint", offer.model_fingerprint);
  field("newest_parameters", offer.newest_parameters);
  field("momentum", offer.momentum);
  field("socket_buffer", offer.socket_buffer);
  field("keep_alive", offer.keep_alive);
  field("quick_ack", offer.quick_ack);
  field("receive_chunk", offer.receive_chunk);
  field("combined_send", offer.combined_send);
  field("memory_probe", offer.memory_probe);
};

constexpr auto kReady = [](auto& field, auto& ready) {
  field("model_fingerprint", ready.model_fingerprint);
  field("compute", ready.compute);
  field("engine", ready.engine);
  field("processor", ready.processor);
  field("sample_cache_bytes", ready.sample_cache_bytes);
  field("machine", ready.machine);
  field("lanes", ready.lanes);
  field("memory_token", ready.memory_token);
};

}  // namespace

void encode(const Offer& message, Head& head) {
  encode_map(kOffer, message, head);
}

Result<Offer> decode_offer(Bytes head, const Limits& limits) {
  return decode_map<Offer>(kOffer, "an offer", head, limits);
}

void encode(const Ready& message, Head& head) {
  encode_map(kReady, message, head);
}

Result<Ready> decode_ready(Bytes head, const Limits& limits) {
  return decode_map<Ready>(kReady, "a ready", head, limits);
}

void encode(const ModelPart& message, Head& head) {
  ByteWriter writer(head);
  writer.write(message.offset);
  writer.write(message.bytes);
}

Result<ModelPart> decode_model_part(Bytes head, const Limits& limits) {
  ByteReader reader(head);
  ModelPart message;
  message.offset = reader.read<std::uint64_t>();
  message.bytes = reader.read<std::uint64_t>();
  if (!reader.finished()) return corrupt("the head of a model part is not 16 bytes");
  if (message.bytes > limits.payload_bytes_max) {
    return overloaded("a model part of {} bytes; at most {}", message.bytes, limits.payload_bytes_max);
  }
  return message;
}

}  // namespace w5xde
