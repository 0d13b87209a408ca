#include "wire/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/printable.h"
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

Result<Form> read_form(ByteReader& reader) {
  const auto form = reader.read<std::uint8_t>();
  if (form > static_cast<std::uint8_t>(Form::gradient))
    return corrupt(fmt::format("a payload of form {}", form));
  return static_cast<Form>(form);
}

Result<std::uint32_t> read_rank(ByteReader& reader) {
  const std::uint64_t rank = reader.read_varint();
  if (rank > UINT16_MAX) return corrupt(fmt::format("a gradient of rank {}", rank));
  return static_cast<std::uint32_t>(rank);
}

Result<std::uint32_t> read_lanes(ByteReader& reader) {
  const std::uint64_t lanes = reader.read_varint();
  if (lanes > UINT32_MAX) return corrupt(fmt::format("{} lanes", lanes));
  return static_cast<std::uint32_t>(lanes);
}

// A direct payload, the usual one, is a byte here.
void write_coding(ByteWriter& writer, const Coding& coding) {
  writer.write(static_cast<std::uint8_t>(coding.form));
  if (coding.form == Form::direct) return;
  writer.write(coding.gradient_kind);
  writer.write_varint(coding.rank);
  writer.write_varint(coding.bytes);
}

Result<Coding> read_coding(ByteReader& reader, const Limits& limits) {
  Coding coding;
  W5XDE_TRY(coding.form, read_form(reader));
  if (coding.form == Form::direct) return coding;
  coding.gradient_kind = reader.read<std::uint8_t>();
  W5XDE_TRY(coding.rank, read_rank(reader));
  coding.bytes = reader.read_varint();
  if (coding.bytes > limits.payload_bytes_max) {
    return overloaded(
        fmt::format("a payload of {} bytes; at most {}", coding.bytes, limits.payload_bytes_max));
  }
  return coding;
}

void write_answer(ByteWriter& writer, const AnswerCoding& answer) {
  writer.write(static_cast<std::uint8_t>(answer.form));
  writer.write(answer.gradient_kind);
  writer.write_varint(answer.rank);
  writer.write(answer.density);
  writer.write(answer.lossless);
  writer.write(answer.level);
  writer.write(answer.shuffle_width);
  writer.write_varint(answer.part_floats);
}

Result<AnswerCoding> read_answer(ByteReader& reader) {
  AnswerCoding answer;
  W5XDE_TRY(answer.form, read_form(reader));
  answer.gradient_kind = reader.read<std::uint8_t>();
  W5XDE_TRY(answer.rank, read_rank(reader));
  answer.density = reader.read<float>();
  answer.lossless = reader.read<std::uint8_t>();
  answer.level = reader.read<std::int32_t>();
  answer.shuffle_width = reader.read<std::uint8_t>();
  answer.part_floats = reader.read_varint();
  return answer;
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

std::uint64_t Lease::samples() const {
  return std::accumulate(slot_samples.begin(), slot_samples.end(), std::uint64_t{0});
}

void encode(const Lease& message, Head& head) {
  ByteWriter writer(head);
  writer.write(message.lease_id);
  writer.write(message.step);
  writer.write(message.version);
  writer.write(message.seed);
  write_block(writer, message.block);
  writer.write(static_cast<std::uint8_t>(message.work));
  writer.write_varint(message.lanes);
  write_answer(writer, message.answer);
  for (const std::uint32_t samples : message.slot_samples) writer.write_varint(samples);
  writer.write_varint(message.numbers.size());
  for (const SampleNumber& sample : message.numbers)
    writer.write_varint(std::uint64_t{sample.number} << 2 | static_cast<std::uint64_t>(sample.kind));
  write_coding(writer, message.coding);
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

Status read_numbers(ByteReader& reader, Lease& lease) {
  const std::uint64_t count = reader.read_varint();
  if (count == 0) return {};
  if (count != lease.samples() || count > reader.rest().size())
    return corrupt(fmt::format("{} numbers for {} samples", count, lease.samples()));
  lease.numbers.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = reader.read_varint();
    if (number >> 2 > UINT32_MAX || (number & 3) > static_cast<std::uint64_t>(SampleNumber::Kind::passing))
      return corrupt(fmt::format("{} is no number of a sample", number));
    lease.numbers.push_back(
        {static_cast<std::uint32_t>(number >> 2), static_cast<SampleNumber::Kind>(number & 3)});
  }
  return {};
}

Status check_samples(const Lease& lease) {
  std::uint64_t samples = lease.samples();
  if (!lease.numbers.empty()) {
    samples -= static_cast<std::uint64_t>(
        std::ranges::count(lease.numbers, SampleNumber::Kind::kept, &SampleNumber::kind));
  }
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
  W5XDE_TRY(message.lanes, read_lanes(reader));
  W5XDE_TRY(message.answer, read_answer(reader));
  W5XDE_CHECK(read_slot_samples(reader, message));
  W5XDE_CHECK(read_numbers(reader, message));
  W5XDE_TRY(message.coding, read_coding(reader, limits));
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
  writer.write_varint(message.lanes);
  writer.write(message.wait_ns);
  writer.write(message.codec_ns);
  writer.write(message.loop_ns);
  writer.write_varint(message.first_float);
  write_coding(writer, message.coding);
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
  W5XDE_TRY(message.lanes, read_lanes(reader));
  message.wait_ns = reader.read<std::uint64_t>();
  message.codec_ns = reader.read<std::uint64_t>();
  message.loop_ns = reader.read<std::uint64_t>();
  message.first_float = reader.read_varint();
  W5XDE_TRY(message.coding, read_coding(reader, limits));
  W5XDE_TRY(message.tensors, decode_tensor_list(reader, limits));
  W5XDE_CHECK(finish(reader, "contribution"));
  return message;
}

void encode(const Parameters& message, Head& head) {
  ByteWriter writer(head);
  writer.write(message.version);
  writer.write(message.base);
  writer.write(message.first_float);
  writer.write(message.floats_total);
  write_coding(writer, message.coding);
  encode_tensor_list(message.tensors, writer);
}

Result<Parameters> decode_parameters(Bytes head, const Limits& limits) {
  ByteReader reader(head);
  Parameters message;
  message.version = reader.read<std::uint64_t>();
  message.base = reader.read<std::uint64_t>();
  message.first_float = reader.read<std::uint64_t>();
  message.floats_total = reader.read<std::uint64_t>();
  W5XDE_TRY(message.coding, read_coding(reader, limits));
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

void encode(const Feedback& message, Head& head) {
  ByteWriter writer(head);
  writer.write(static_cast<std::uint8_t>(message.leaving ? 1 : 0));
  writer.write(message.taken_over);
  encode_tensor_list(message.tensors, writer);
}

Result<Feedback> decode_feedback(Bytes head, const Limits& limits) {
  ByteReader reader(head);
  Feedback message;
  const auto leaving = reader.read<std::uint8_t>();
  if (leaving > 1) return corrupt(fmt::format("feedback that is leaving {} times", leaving));
  message.leaving = leaving == 1;
  message.taken_over = reader.read<std::uint32_t>();
  W5XDE_TRY(message.tensors, decode_tensor_list(reader, limits));
  W5XDE_CHECK(finish(reader, "feedback"));
  if (message.tensors.size() > 1 || (!message.tensors.empty() && (message.tensors[0].shape.rank() != 1 ||
                                                                  message.tensors[0].dtype != DType::f32))) {
    return corrupt("feedback is not one flat tensor of f32");
  }
  return message;
}

void encode(const Verdict& message, Head& head) {
  ByteWriter writer(head);
  writer.write(message.lease_id);
  writer.write(static_cast<std::uint8_t>(message.counted ? 1 : 0));
}

Result<Verdict> decode_verdict(Bytes head) {
  ByteReader reader(head);
  Verdict message;
  message.lease_id = reader.read<std::uint64_t>();
  const auto counted = reader.read<std::uint8_t>();
  W5XDE_CHECK(finish(reader, "verdict"));
  if (counted > 1) return corrupt(fmt::format("a contribution that counts {} times", counted));
  message.counted = counted == 1;
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
  for (const ErrorKind known :
       {ErrorKind::invalid, ErrorKind::corrupt, ErrorKind::incompatible, ErrorKind::disconnected,
        ErrorKind::overloaded, ErrorKind::system, ErrorKind::diverged}) {
    if (kind == name_of(known)) message.kind = known;
  }
  if (const auto reason = map.find("reason"); reason != map.end() && reason->is_string()) {
    message.reason = printable(reason->get_ref<const std::string&>());
  }
  return message;
}

}  // namespace w5xde
