#include "wire/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/errors.h"
#include "base/printable.h"
#include "w5xde/sample_field.h"
#include "wire/value.h"

namespace w5xde {

namespace {

// Each message has one list of its fields, in the order in which they travel. A Writer and a Reader follow
// the same list; what a list says of ranges and refusals is for the Reader.
class Writer {
 public:
  explicit Writer(Head& head) : out_(head) {}

  template <Number T>
  void operator()(T value) {
    out_.write(value);
  }
  void operator()(const SlotBlock& block) {
    out_.write(block.first_slot);
    out_.write(block.slot_count);
  }
  void operator()(const TensorList& tensors) { encode_tensor_list(tensors, out_); }
  void varint(std::uint64_t value, std::uint64_t = 0, std::string_view = {}) { out_.write_varint(value); }
  void payload_bytes(std::uint64_t bytes) { out_.write_varint(bytes); }
  template <class T>
  void byte(T value, T, std::string_view) {
    out_.write(static_cast<std::uint8_t>(value));
  }
  void slot_samples(const Lease& lease) {
    for (const std::uint32_t samples : lease.slot_samples) out_.write_varint(samples);
  }
  void sample_numbers(const Lease& lease) {
    out_.write_varint(lease.numbers.size());
    for (const SampleNumber& sample : lease.numbers)
      out_.write_varint(std::uint64_t{sample.number} << 2 | static_cast<std::uint64_t>(sample.kind));
  }

 private:
  ByteWriter out_;
};

// The first thing that is wrong is kept; what is read after it means nothing.
class Reader {
 public:
  Reader(Bytes head, const Limits& limits) : in_(head), limits_(limits) {}

  template <Number T>
  void operator()(T& to) {
    to = in_.read<T>();
  }
  void operator()(SlotBlock& to) {
    to.first_slot = in_.read<std::uint32_t>();
    to.slot_count = in_.read<std::uint32_t>();
    if (in_.exhausted()) return refuse(corrupt("a block of slots is cut short"));
    if (!to.valid()) refuse(corrupt("slots {} + {} are not an aligned block", to.first_slot, to.slot_count));
  }
  void operator()(TensorList& to) {
    auto tensors = decode_tensor_list(in_, limits_);
    if (!tensors) return refuse(std::move(tensors).error());
    to = std::move(tensors).value();
  }
  template <class T>
  void varint(T& to, std::uint64_t max = UINT64_MAX, std::string_view refusal = {}) {
    const std::uint64_t value = in_.read_varint();
    if (value > max) return refuse(corrupt(fmt::format(fmt::runtime(refusal), value)));
    to = static_cast<T>(value);
  }
  void payload_bytes(std::uint64_t& to) {
    to = in_.read_varint();
    if (to > limits_.payload_bytes_max)
      refuse(overloaded("a payload of {} bytes; at most {}", to, limits_.payload_bytes_max));
  }
  // A flag, or an enum whose last value is `last`.
  template <class T>
  void byte(T& to, T last, std::string_view refusal) {
    const auto value = in_.read<std::uint8_t>();
    if (value > static_cast<std::uint8_t>(last))
      return refuse(corrupt(fmt::format(fmt::runtime(refusal), value)));
    to = static_cast<T>(value);
  }
  void slot_samples(Lease& lease);
  void sample_numbers(Lease& lease);

  // A head holds one message and nothing else.
  Status finish(std::string_view what) {
    if (!status_.ok()) return std::move(status_);
    if (in_.exhausted()) return corrupt("the head of a {} is cut short", what);
    if (!in_.finished()) return corrupt("{} bytes too many in the head of a {}", in_.rest().size(), what);
    return {};
  }

 private:
  void refuse(Error error) {
    if (status_.ok()) status_ = std::move(error);
  }

  ByteReader in_;
  const Limits& limits_;
  Status status_;
};

void Reader::slot_samples(Lease& lease) {
  // A count takes a byte at least: proven before anything is sized by it.
  if (!status_.ok() || lease.block.slot_count > in_.rest().size())
    return refuse(corrupt("the slots of a lease are cut short"));
  lease.slot_samples.resize(lease.block.slot_count);
  for (std::uint32_t& samples : lease.slot_samples) varint(samples, UINT32_MAX, "{} samples in one slot");
}

void Reader::sample_numbers(Lease& lease) {
  const std::uint64_t count = in_.read_varint();
  if (count == 0) return;
  if (count != lease.samples() || count > in_.rest().size())
    return refuse(corrupt("{} numbers for {} samples", count, lease.samples()));
  lease.numbers.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t number = in_.read_varint();
    if (number >> 2 > UINT32_MAX || (number & 3) > static_cast<std::uint64_t>(SampleNumber::Kind::passing))
      return refuse(corrupt("{} is no number of a sample", number));
    lease.numbers.push_back(
        {static_cast<std::uint32_t>(number >> 2), static_cast<SampleNumber::Kind>(number & 3)});
  }
}

template <class Message>
void write(const auto& fields, const Message& message, Head& head) {
  Writer writer(head);
  fields(writer, message);
}

template <class Message>
Result<Message> read(const auto& fields, std::string_view what, Bytes head, const Limits& limits) {
  Reader reader(head, limits);
  Message message;
  fields(reader, message);
  W5XDE_CHECK(reader.finish(what));
  return message;
}

constexpr auto kHeartbeat = [](auto& field, auto& heartbeat) { field(heartbeat.token); };

constexpr auto kTensors = [](auto& field, auto& message) { field(message.tensors); };

constexpr auto kForm = [](auto& field, auto& form) {
  field.byte(form, Form::shared, "a payload of form {}");
};

constexpr auto kMemory = [](auto& field, auto& memory) {
  field(memory.process);
  field(memory.descriptor);
  field(memory.bytes);
  field(memory.id);
};

constexpr auto kRank = [](auto& field, auto& rank) {
  field.varint(rank, UINT16_MAX, "a gradient of rank {}");
};

// A direct payload, the usual one, is a byte here; so is one in memory that its lease has named.
constexpr auto kCoding = [](auto& field, auto& coding) {
  kForm(field, coding.form);
  if (coding.form == Form::direct || coding.form == Form::shared) return;
  field(coding.gradient_kind);
  kRank(field, coding.rank);
  field.payload_bytes(coding.bytes);
};

constexpr auto kAnswerCoding = [](auto& field, auto& answer) {
  kForm(field, answer.form);
  field(answer.gradient_kind);
  kRank(field, answer.rank);
  field(answer.density);
  field(answer.lossless);
  field(answer.level);
  field(answer.shuffle_width);
  field.varint(answer.part_floats);
  if (answer.form == Form::shared) kMemory(field, answer.memory);
};

constexpr auto kLease = [](auto& field, auto& lease) {
  field(lease.lease_id);
  field(lease.step);
  field(lease.version);
  field(lease.seed);
  field(lease.block);
  field.byte(lease.work, Work::evaluate, "a lease of work {}");
  field.varint(lease.lanes, UINT32_MAX, "{} lanes");
  kAnswerCoding(field, lease.answer);
  field.slot_samples(lease);
  field.sample_numbers(lease);
  kCoding(field, lease.coding);
  field(lease.tensors);
};

constexpr auto kContribution = [](auto& field, auto& contribution) {
  field(contribution.lease_id);
  field(contribution.step);
  field(contribution.version);
  field(contribution.block);
  field(contribution.samples);
  field(contribution.loss_sum);
  field.varint(contribution.counted);
  field.varint(contribution.correct);
  field(contribution.compute_ns);
  field.varint(contribution.lanes, UINT32_MAX, "{} lanes");
  field(contribution.wait_ns);
  field(contribution.codec_ns);
  field(contribution.loop_ns);
  field.varint(contribution.first_float);
  kCoding(field, contribution.coding);
  field(contribution.tensors);
};

constexpr auto kParameters = [](auto& field, auto& parameters) {
  field(parameters.version);
  field(parameters.base);
  field(parameters.first_float);
  field(parameters.floats_total);
  kCoding(field, parameters.coding);
  if (parameters.coding.form == Form::shared) kMemory(field, parameters.memory);
  field(parameters.tensors);
};

constexpr auto kFeedback = [](auto& field, auto& feedback) {
  field.byte(feedback.leaving, true, "feedback that is leaving {} times");
  field(feedback.taken_over);
  field(feedback.tensors);
};

constexpr auto kVerdict = [](auto& field, auto& verdict) {
  field(verdict.lease_id);
  field.byte(verdict.counted, true, "a contribution that counts {} times");
};

bool is_flat(const TensorDescriptor& tensor) {
  return tensor.shape.rank() == 1 && tensor.dtype == DType::f32;
}

}  // namespace

std::uint64_t Lease::samples() const {
  return std::accumulate(slot_samples.begin(), slot_samples.end(), std::uint64_t{0});
}

void encode(const Heartbeat& message, Head& head) {
  write(kHeartbeat, message, head);
}

void encode(const Tensors& message, Head& head) {
  write(kTensors, message, head);
}

void encode(const Lease& message, Head& head) {
  write(kLease, message, head);
}

void encode(const Contribution& message, Head& head) {
  write(kContribution, message, head);
}

void encode(const Parameters& message, Head& head) {
  write(kParameters, message, head);
}

void encode(const Feedback& message, Head& head) {
  write(kFeedback, message, head);
}

void encode(const Verdict& message, Head& head) {
  write(kVerdict, message, head);
}

Result<Heartbeat> decode_heartbeat(Bytes head) {
  return read<Heartbeat>(kHeartbeat, "heartbeat", head, Limits());
}

Result<Tensors> decode_tensors(Bytes head, const Limits& limits) {
  return read<Tensors>(kTensors, "tensors", head, limits);
}

Result<Lease> decode_lease(Bytes head, const Limits& limits) {
  W5XDE_TRY(Lease lease, read<Lease>(kLease, "lease", head, limits));
  if (lease.coding.form == Form::shared) return corrupt("a lease whose samples are in shared memory");
  // Samples that the node has are not in the tensors.
  const std::uint64_t samples =
      lease.samples() - static_cast<std::uint64_t>(
                            std::ranges::count(lease.numbers, SampleNumber::Kind::kept, &SampleNumber::kind));
  const auto has_them = [&](const TensorDescriptor& tensor) {
    return tensor.shape.rank() > 0 && static_cast<std::uint64_t>(tensor.shape[0]) == samples;
  };
  const bool some = lease.tensors.size() >= 2 && lease.tensors.size() <= kInputsMax + 1;
  if (!some || !std::ranges::all_of(lease.tensors, has_them)) {
    return corrupt("a lease of {} samples has other tensors than their inputs and targets", samples);
  }
  return lease;
}

Result<Contribution> decode_contribution(Bytes head, const Limits& limits) {
  return read<Contribution>(kContribution, "contribution", head, limits);
}

Result<Parameters> decode_parameters(Bytes head, const Limits& limits) {
  W5XDE_TRY(Parameters message, read<Parameters>(kParameters, "parameters", head, limits));
  if (message.tensors.size() != 1 || !is_flat(message.tensors[0]))
    return corrupt("parameters are not one flat tensor of f32");
  const std::uint64_t floats = message.tensors[0].shape.elements();
  if (message.first_float > message.floats_total || floats > message.floats_total - message.first_float) {
    return corrupt("parameters {} + {} reach past {}", message.first_float, floats, message.floats_total);
  }
  if (message.coding.form == Form::shared && (floats != message.floats_total || message.base != kNoVersion))
    return corrupt("parameters in shared memory that are not a whole version");
  return message;
}

Result<Feedback> decode_feedback(Bytes head, const Limits& limits) {
  W5XDE_TRY(Feedback message, read<Feedback>(kFeedback, "feedback", head, limits));
  if (message.tensors.size() > 1 || !std::ranges::all_of(message.tensors, is_flat))
    return corrupt("feedback is not one flat tensor of f32");
  return message;
}

Result<Verdict> decode_verdict(Bytes head) {
  return read<Verdict>(kVerdict, "verdict", head, Limits());
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
        ErrorKind::overloaded, ErrorKind::system, ErrorKind::diverged, ErrorKind::unavailable}) {
    if (kind == name_of(known)) message.kind = known;
  }
  if (const auto reason = map.find("reason"); reason != map.end() && reason->is_string()) {
    message.reason = printable(reason->get_ref<const std::string&>());
  }
  return message;
}

}  // namespace w5xde
