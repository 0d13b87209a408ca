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
#include "base/shared_memory.h"
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

// How a block of floats became a payload, before the frame's lossless codec. The message's tensors describe
// the decoded block; with a form other than `direct`, other bytes travel, or none.
enum class Form : std::uint8_t {
  direct = 0,    // the tensors' own bytes
  generic = 1,   // number by number (wire/generic_tensors.h)
  gradient = 2,  // parameters through a gradient codec (codec/gradient.h), then buffers as they are
  shared = 3,    // no payload: in memory that the coordinator shares with a node of its machine
};

struct Coding {
  Form form = Form::direct;
  std::uint8_t gradient_kind = 0;  // a GradientKind; 0 where the form is another
  std::uint32_t rank = 0;          // of a low-rank gradient
  std::uint64_t bytes = 0;         // of the payload before the lossless codec; 0: direct or shared
  bool operator==(const Coding&) const = default;
};

// How a node is to encode its answer: the coordinator has measured the link.
struct AnswerCoding {
  Form form = Form::direct;
  std::uint8_t gradient_kind = 0;
  std::uint32_t rank = 0;
  float density = 0;          // of a sparse gradient
  std::uint8_t lossless = 0;  // a LosslessKind; 255: the node chooses
  std::int32_t level = 0;     // of that
  std::uint8_t shuffle_width = 0;
  std::uint64_t part_floats = 0;  // the size of the parts that it travels in; 0: in one piece
  SharedBlock::Address memory;    // where it is to be written; of a shared one
  bool operator==(const AnswerCoding&) const = default;
};

// A sample of a lease, where samples have numbers: is it in the payload, and should the node keep it?
struct SampleNumber {
  enum class Kind : std::uint8_t {
    kept = 0,      // the node has it
    new_kept = 1,  // comes with this lease; the node keeps it
    passing = 2,   // comes with this lease; not to be kept
  };
  std::uint32_t number = 0;
  Kind kind = Kind::kept;
  bool operator==(const SampleNumber&) const = default;
};

// Coordinator to node: compute these slots of this step, with this version of the parameters. The tensors are
// the slots' samples, one slot's after the other's: the inputs, then the targets. Where samples have numbers,
// only those that the node does not have are in the tensors. A node answers every lease with one
// contribution, in one piece or in parts.
struct Lease {
  std::uint64_t lease_id = 0;
  std::uint64_t step = 0;
  std::uint64_t version = 0;
  std::uint64_t seed = 0;  // the step's; a slot's own comes from it and the slot's number
  SlotBlock block;
  Work work = Work::train;
  std::uint32_t lanes = 1;  // slots to compute at once: the node's share of its machine's cores
  AnswerCoding answer;
  std::vector<std::uint32_t>
      slot_samples;                   // how many samples each slot has; together the tensors' first dimension
  std::vector<SampleNumber> numbers;  // one a sample, or none at all
  Coding coding;
  TensorList tensors;

  std::uint64_t samples() const;  // of all slots
  bool operator==(const Lease&) const = default;
};

// Node to coordinator: the sums of a lease's slots, added up along the tree. A training lease has one flat
// tensor: the gradient, then buffers. An evaluation has none, and neither has a lease that became void
// because a newer version of the parameters arrived first. Times count from the node's last contribution.
// Parts differ only in the floats that they bring; they come in order, and the last one completes the
// contribution.
struct Contribution {
  std::uint64_t lease_id = 0;
  std::uint64_t step = 0;
  std::uint64_t version = 0;
  SlotBlock block;
  std::uint64_t samples = 0;
  double loss_sum = 0;
  std::uint64_t counted = 0;  // of an evaluation's targets, those that are classes and count
  std::uint64_t correct = 0;  // of those
  std::uint64_t compute_ns = 0;
  std::uint32_t lanes = 1;    // in which it computed
  std::uint64_t wait_ns = 0;  // for a lease, or for its parameters
  std::uint64_t codec_ns = 0;
  std::uint64_t loop_ns = 0;      // the longest that anything has taken on the node's loop, so far
  std::uint64_t first_float = 0;  // of the tensor, in the whole block
  Coding coding;
  TensorList tensors;
  bool operator==(const Contribution&) const = default;
};

inline constexpr std::uint64_t kNoVersion = UINT64_MAX;

// Coordinator to node: the floats from first_float on of a version of the parameter block. Large blocks come
// in parts, in order. With a base, what is to be added to that version instead. Shared ones are where
// `memory` says, whole, until the node has answered its leases of that version.
struct Parameters {
  std::uint64_t version = 0;
  std::uint64_t base = kNoVersion;
  std::uint64_t first_float = 0;
  std::uint64_t floats_total = 0;
  Coding coding;
  SharedBlock::Address memory;  // of shared ones
  TensorList tensors;
  bool operator==(const Parameters&) const = default;
};

// Error feedback: what a lossy codec has dropped and not sent yet. A coordinator that sends none asks for a
// copy, for a checkpoint. A coordinator that sends a tensor hands over the feedback of a node that is gone:
// add it to yours. A node sends the copy, or all it has when it leaves.
struct Feedback {
  bool leaving = false;
  // From a node: how many pieces of handed-over feedback are in it. One that crossed its goodbye is not.
  std::uint32_t taken_over = 0;
  TensorList tensors;
  bool operator==(const Feedback&) const = default;
};

// Coordinator to node, for every contribution through a codec with error feedback: does it count? If not, the
// node undoes what encoding did to its feedback: another node's answer to the same slots counts, or these
// slots are computed again.
struct Verdict {
  std::uint64_t lease_id = 0;
  bool counted = false;
  bool operator==(const Verdict&) const = default;
};

// The last frame: why this side leaves.
struct Goodbye {
  ErrorKind kind = ErrorKind::disconnected;
  std::string reason;
  bool operator==(const Goodbye&) const = default;
};

void encode(const Heartbeat& message, Head& head);
void encode(const Tensors& message, Head& head);
void encode(const Lease& message, Head& head);
void encode(const Contribution& message, Head& head);
void encode(const Parameters& message, Head& head);
void encode(const Feedback& message, Head& head);
void encode(const Verdict& message, Head& head);
void encode(const Goodbye& message, Head& head);

Result<Heartbeat> decode_heartbeat(Bytes head);
Result<Tensors> decode_tensors(Bytes head, const Limits& limits);
Result<Lease> decode_lease(Bytes head, const Limits& limits);
Result<Contribution> decode_contribution(Bytes head, const Limits& limits);
Result<Parameters> decode_parameters(Bytes head, const Limits& limits);
Result<Feedback> decode_feedback(Bytes head, const Limits& limits);
Result<Verdict> decode_verdict(Bytes head);
Result<Goodbye> decode_goodbye(Bytes head, const Limits& limits);

}  // namespace w5xde
