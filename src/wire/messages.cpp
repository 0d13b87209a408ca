#include "wire/messages.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "wire/value.h"

namespace w5xde {

namespace {

// Every decoder ends here: a head holds one message and nothing else.
Status finish(const ByteReader& reader, std::string_view what) {
  if (reader.exhausted()) return corrupt(fmt::format("the head of a {} is cut short", what));
  if (!reader.finished()) {
    return corrupt(fmt::format("{} bytes too many in the head of a {}", reader.rest().size(), what));
  }
  return {};
}

void write_block(ByteWriter& writer, const SlotBlock& block) {
  writer.write(block.first_slot);
  writer.write(block.slot_count);
}

Result<SlotBlock> read_block(ByteReader& reader) {
  SlotBlock block;
  block.first_slot = reader.read<std::uint32_t>();
  block.slot_count = reader.read<std::uint32_t>();
  if (reader.exhausted()) return corrupt("a block of slots is cut short");
  if (!block.valid()) {
    return corrupt(fmt::format("slots {} + {} are not an aligned block", block.first_slot, block.slot_count));
  }
  return block;
}

}  // namespace

void encode(const Heartbeat& message, Head& head) {
  ByteWriter(head).write(message.token);
}

Result<Heartbeat> decode_heartbeat(Bytes head) {
  ByteReader reader(head);
  const Heartbeat message{reader.read<std::uint64_t>()};
  W5XDE_CHECK(finish(reader, "heartbeat"));
  return message;
}

void encode(const Tensors& message, Head& head) {
  ByteWriter writer(head);
  encode_tensor_list(message.tensors, writer);
}

Result<Tensors> decode_tensors(Bytes head, const Limits& limits) {
  ByteReader reader(head);
  Tensors message;
  W5XDE_TRY(message.tensors, decode_tensor_list(reader, limits));
  W5XDE_CHECK(finish(reader, "tensors"));
  return message;
}

void encode(const Value& message, Head& head) {
  ByteWriter(head).write(message.payload_bytes);
}

Result<Value> decode_value_head(Bytes head, const Limits& limits) {
  ByteReader reader(head);
  const Value message{reader.read<std::uint64_t>()};
  W5XDE_CHECK(finish(reader, "value"));
  if (message.payload_bytes > limits.payload_bytes_max) {
    return overloaded(
        fmt::format("a value of {} bytes; at most {}", message.payload_bytes, limits.payload_bytes_max));
  }
  return message;
}

void encode(const Lease& message, Head& head) {
  ByteWriter writer(head);
  writer.write(message.lease_id);
  writer.write(message.step);
  writer.write(message.version);
  writer.write(message.seed);
  write_block(writer, message.block);
  writer.write(static_cast<std::uint8_t>(message.work));
  for (const std::uint32_t samples : message.slot_samples) writer.write_varint(samples);
  encode_tensor_list(message.tensors, writer);
}

namespace {

// Each slot's count, and that the tensors have just that many samples.
Status read_slot_samples(ByteReader& reader, Lease& lease) {
  // A count takes a byte at least: proven before anything is sized by it.
  if (lease.block.slot_count > reader.rest().size()) return corrupt("the slots of a lease are cut short");
  lease.slot_samples.reserve(lease.block.slot_count);
  for (std::uint32_t slot = 0; slot < lease.block.slot_count; ++slot) {
    const std::uint64_t samples = reader.read_varint();
    if (samples > UINT32_MAX) return corrupt(fmt::format("{} samples in one slot", samples));
    lease.slot_samples.push_back(static_cast<std::uint32_t>(samples));
  }
  return {};
}

Status check_samples(const Lease& lease) {
  std::uint64_t samples = 0;
  for (const std::uint32_t count : lease.slot_samples) samples += count;
  const auto has_them = [&](const TensorDescriptor& tensor) {
    return tensor.shape.rank() > 0 && static_cast<std::uint64_t>(tensor.shape[0]) == samples;
  };
  if (lease.tensors.size() != 2 || !has_them(lease.tensors[0]) || !has_them(lease.tensors[1])) {
    return corrupt(
        fmt::format("a lease of {} samples has other tensors than their inputs and targets", samples));
  }
  return {};
}

}  // namespace

Result<Lease> decode_lease(Bytes head, const Limits& limits) {
  ByteReader reader(head);
  Lease message;
  message.lease_id = reader.read<std::uint64_t>();
  message.step = reader.read<std::uint64_t>();
  message.version = reader.read<std::uint64_t>();
  message.seed = reader.read<std::uint64_t>();
  W5XDE_TRY(message.block, read_block(reader));
  const auto work = reader.read<std::uint8_t>();
  if (work > static_cast<std::uint8_t>(Work::evaluate))
    return corrupt(fmt::format("a lease of work {}", work));
  message.work = static_cast<Work>(work);
  W5XDE_CHECK(read_slot_samples(reader, message));
  W5XDE_TRY(message.tensors, decode_tensor_list(reader, limits));
  W5XDE_CHECK(finish(reader, "lease"));
  W5XDE_CHECK(check_samples(message));
  return message;
}

void encode(const Contribution& message, Head& head) {
  ByteWriter writer(head);
  writer.write(message.lease_id);
  writer.write(message.step);
  writer.write(message.version);
  write_block(writer, message.block);
  writer.write(message.samples);
  writer.write(message.loss_sum);
  writer.write(message.correct);
  writer.write(message.compute_ns);
  writer.write(message.wait_ns);
  writer.write(message.codec_ns);
  encode_tensor_list(message.tensors, writer);
}

Result<Contribution> decode_contribution(Bytes head, const Limits& limits) {
  ByteReader reader(head);
  Contribution message;
  message.lease_id = reader.read<std::uint64_t>();
  message.step = reader.read<std::uint64_t>();
  message.version = reader.read<std::uint64_t>();
  W5XDE_TRY(message.block, read_block(reader));
  message.samples = reader.read<std::uint64_t>();
  message.loss_sum = reader.read<double>();
  message.correct = reader.read<std::uint64_t>();
  message.compute_ns = reader.read<std::uint64_t>();
  message.wait_ns = reader.read<std::uint64_t>();
  message.codec_ns = reader.read<std::uint64_t>();
  W5XDE_TRY(message.tensors, decode_tensor_list(reader, limits));
  W5XDE_CHECK(finish(reader, "contribution"));
  return message;
}

void encode(const Parameters& message, Head& head) {
  ByteWriter writer(head);
  writer.write(message.version);
  writer.write(message.first_float);
  writer.write(message.floats_total);
  encode_tensor_list(message.tensors, writer);
}

Result<Parameters> decode_parameters(Bytes head, const Limits& limits) {
  ByteReader reader(head);
  Parameters message;
  message.version = reader.read<std::uint64_t>();
  message.first_float = reader.read<std::uint64_t>();
  message.floats_total = reader.read<std::uint64_t>();
  W5XDE_TRY(message.tensors, decode_tensor_list(reader, limits));
  W5XDE_CHECK(finish(reader, "parameters"));
  if (message.tensors.size() != 1 || message.tensors[0].shape.rank() != 1 ||
      message.tensors[0].dtype != DType::f32) {
    return corrupt("parameters are not one flat tensor of f32");
  }
  if (message.first_float > message.floats_total ||
      message.tensors[0].shape.elements() > message.floats_total - message.first_float) {
    return corrupt(fmt::format("parameters {} + {} reach past {}", message.first_float,
                               message.tensors[0].shape.elements(), message.floats_total));
  }
  return message;
}

void encode(const Goodbye& message, Head& head) {
  encode_value({{"kind", name_of(message.kind)}, {"reason", message.reason}}, head);
}

Result<Goodbye> decode_goodbye(Bytes head, const Limits& limits) {
  W5XDE_TRY(const nlohmann::json map, decode_value(head, limits));
  if (!map.is_object()) return corrupt("a goodbye is not a map");
  Goodbye message;
  // A kind of a newer version is read as the plainest one.
  const auto kind = map.value("kind", nlohmann::json());
  for (const ErrorKind known : {ErrorKind::invalid, ErrorKind::corrupt, ErrorKind::incompatible,
                                ErrorKind::disconnected, ErrorKind::overloaded, ErrorKind::system}) {
    if (kind == name_of(known)) message.kind = known;
  }
  if (const auto reason = map.find("reason"); reason != map.end() && reason->is_string()) {
    message.reason = reason->get<std::string>();
  }
  return message;
}

}  // namespace w5xde
