#include "wire/enrolment.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "wire/map_reader.h"
#include "wire/value.h"

namespace w5xde {

using nlohmann::json;

void encode(const Offer& message, Head& head) {
  encode_value({{"run", message.run},
                {"model", message.model},
                {"model_hash", message.model_hash},
                {"model_bytes", message.model_bytes},
                {"loss", message.loss},
                {"sample_shape", message.sample_shape},
                {"classes", message.classes},
                {"threads", message.threads},
                {"model_fingerprint", message.model_fingerprint},
                {"newest_parameters", message.newest_parameters},
                {"momentum", message.momentum},
                {"socket_buffer", message.socket_buffer},
                {"keep_alive", message.keep_alive},
                {"quick_ack", message.quick_ack},
                {"receive_chunk", message.receive_chunk},
                {"combined_send", message.combined_send}},
               head);
}

namespace {

Status read_model(const MapReader& reader, Offer& message) {
  W5XDE_CHECK(reader.text("model", message.model));
  W5XDE_CHECK(reader.text("model_hash", message.model_hash));
  return reader.number("model_bytes", message.model_bytes);
}

Status read_connection(const MapReader& reader, Offer& message) {
  W5XDE_CHECK(reader.number("socket_buffer", message.socket_buffer));
  W5XDE_CHECK(reader.flag("keep_alive", message.keep_alive));
  W5XDE_CHECK(reader.flag("quick_ack", message.quick_ack));
  W5XDE_CHECK(reader.number("receive_chunk", message.receive_chunk));
  return reader.flag("combined_send", message.combined_send);
}

}  // namespace

Result<Offer> decode_offer(Bytes head, const Limits& limits) {
  W5XDE_TRY(const json map, decode_value(head, limits));
  if (!map.is_object()) return corrupt("an offer is not a map");
  const MapReader reader("an offer", map, limits);
  Offer message;
  W5XDE_CHECK(reader.text("run", message.run));
  W5XDE_CHECK(read_model(reader, message));
  W5XDE_CHECK(reader.text("loss", message.loss));
  W5XDE_CHECK(reader.numbers("sample_shape", message.sample_shape));
  W5XDE_CHECK(reader.number("classes", message.classes));
  W5XDE_CHECK(reader.number("threads", message.threads));
  W5XDE_CHECK(reader.number("model_fingerprint", message.model_fingerprint));
  W5XDE_CHECK(reader.flag("newest_parameters", message.newest_parameters));
  W5XDE_CHECK(reader.real("momentum", message.momentum));
  W5XDE_CHECK(read_connection(reader, message));
  return message;
}

void encode(const Ready& message, Head& head) {
  encode_value({{"model_fingerprint", message.model_fingerprint},
                {"engine", message.engine},
                {"processor", message.processor},
                {"sample_cache_bytes", message.sample_cache_bytes},
                {"machine", message.machine},
                {"lanes", message.lanes}},
               head);
}

Result<Ready> decode_ready(Bytes head, const Limits& limits) {
  W5XDE_TRY(const json map, decode_value(head, limits));
  if (!map.is_object()) return corrupt("a ready is not a map");
  const MapReader reader("a ready", map, limits);
  Ready message;
  W5XDE_CHECK(reader.number("model_fingerprint", message.model_fingerprint));
  W5XDE_CHECK(reader.text("engine", message.engine));
  W5XDE_CHECK(reader.text("processor", message.processor));
  W5XDE_CHECK(reader.number("sample_cache_bytes", message.sample_cache_bytes));
  W5XDE_CHECK(reader.text("machine", message.machine));
  W5XDE_CHECK(reader.number("lanes", message.lanes));
  return message;
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
    return overloaded(
        fmt::format("a model part of {} bytes; at most {}", message.bytes, limits.payload_bytes_max));
  }
  return message;
}

}  // namespace w5xde
