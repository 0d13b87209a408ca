// What frames say. Hot messages (lease, contribution, parameters, tensors) have fixed binary heads; cold ones
// (hello, goodbye) are MessagePack maps whose readers ignore keys they do not know, so that either side may
// be newer.
//
// Each message encodes to a frame's head, appended to a vector that the caller may reuse, and decodes from
// one. Tensors are described in the head and travel in the payload.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/slot_block.h"
#include "w5xde/result.h"
#include "wire/tensor_list.h"

namespace w5xde {

using Head = std::vector<std::byte>;

// Ping and pong: the pong repeats the ping's token.
struct Heartbeat {
  std::uint64_t token = 0;
  bool operator==(const Heartbeat&) const = default;
};

struct Tensors {
  TensorList tensors;
  bool operator==(const Tensors&) const = default;
};

// A generic value or generic tensors in the payload; the head says how long that is once decoded.
struct Value {
  std::uint64_t payload_bytes = 0;
  bool operator==(const Value&) const = default;
};

// What a lease asks for. The numbers are part of the wire format.
enum class Work : std::uint8_t { train = 0, evaluate = 1 };

// Coordinator to node: compute these slots of this step, with this version of the parameters. The tensors are
// the slots' samples, one slot's after the other's: inputs, then targets. A node answers every lease with one
// contribution.
struct Lease {
  std::uint64_t lease_id = 0;
  std::uint64_t step = 0;
  std::uint64_t version = 0;
  std::uint64_t seed = 0;  // the step's; a slot's own comes from it and the slot's number
  SlotBlock block;
  Work work = Work::train;
  std::vector<std::uint32_t>
      slot_samples;  // how many samples each slot has; together the tensors' first dimension
  TensorList tensors;
  bool operator==(const Lease&) const = default;
};

// Node to coordinator: what a lease's slots came to, added up along the tree. One flat tensor when it
// trained: the gradient, then buffers. None when it evaluated, or when the lease was void before it was
// begun: a newer version of the parameters had come. The times are since the node's last contribution.
struct Contribution {
  std::uint64_t lease_id = 0;
  std::uint64_t step = 0;
  std::uint64_t version = 0;
  SlotBlock block;
  std::uint64_t samples = 0;
  double loss_sum = 0;
  std::uint64_t correct = 0;  // of an evaluation's samples
  std::uint64_t compute_ns = 0;
  std::uint64_t wait_ns = 0;  // for a lease, or for its parameters
  std::uint64_t codec_ns = 0;
  TensorList tensors;
  bool operator==(const Contribution&) const = default;
};

// Coordinator to node: the floats from first_float on of a version of the parameter block. Large blocks come
// in ranges.
struct Parameters {
  std::uint64_t version = 0;
  std::uint64_t first_float = 0;
  std::uint64_t floats_total = 0;
  TensorList tensors;
  bool operator==(const Parameters&) const = default;
};

// The last frame: why this side leaves.
struct Goodbye {
  ErrorKind kind = ErrorKind::disconnected;
  std::string reason;
  bool operator==(const Goodbye&) const = default;
};

void encode(const Heartbeat& message, Head& head);
void encode(const Tensors& message, Head& head);
void encode(const Value& message, Head& head);
void encode(const Lease& message, Head& head);
void encode(const Contribution& message, Head& head);
void encode(const Parameters& message, Head& head);
void encode(const Goodbye& message, Head& head);

Result<Heartbeat> decode_heartbeat(Bytes head);
Result<Tensors> decode_tensors(Bytes head, const Limits& limits);
Result<Value> decode_value_head(Bytes head, const Limits& limits);
Result<Lease> decode_lease(Bytes head, const Limits& limits);
Result<Contribution> decode_contribution(Bytes head, const Limits& limits);
Result<Parameters> decode_parameters(Bytes head, const Limits& limits);
Result<Goodbye> decode_goodbye(Bytes head, const Limits& limits);

}  // namespace w5xde
