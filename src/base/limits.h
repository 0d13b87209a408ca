// What a peer may make us spend. Decoders check every count and length against it before they allocate, index
// or loop. The functions at the end add up how much memory that can be, one line for each consumer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace w5xde {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

// A model travels in this many parts at most.
inline constexpr std::uint64_t kPartsMax = 256;

struct Limits {
  // One frame.
  std::uint64_t head_bytes_max = 1 * kMiB;     // fixed fields, tensor descriptors, cold messages
  std::uint64_t payload_bytes_max = 1 * kGiB;  // as it travels, and as it is once decoded
  std::uint64_t tensors_max = 16 * kKiB;       // in one frame
  std::uint64_t name_bytes_max = 256;
  std::uint64_t value_depth_max = 16;         // nesting of a MessagePack value
  std::uint64_t value_items_max = 64 * kKiB;  // numbers, strings and containers in a cold message

  // One connection.
  std::uint64_t send_queue_bytes_max = 2 * kGiB;
  std::uint64_t send_queue_frames_max = 4096;

  // One process.
  std::uint64_t connections_max = 1024;
  // Of those, peers that are not ready to work: in all, and from one address (a machine, or all nodes behind
  // one router). A node that finds no place tries again.
  std::uint64_t strangers_max = 512;
  std::uint64_t strangers_per_address_max = 128;

  // What a coordinator may make its node hold.
  std::uint64_t leases_held_max = 4096;
  std::uint64_t lease_bytes_held_max = 4 * kGiB;  // samples of leases that are not computed yet
  std::uint64_t model_file_bytes_max = 2 * kGiB;
  std::uint64_t sample_bytes_max = 256 * kMiB;  // one sample, as a model has it

  // What nodes that come and go may make a coordinator keep of them.
  std::uint64_t node_names_max = 1024;      // in the summary; those past it are one entry together
  std::uint64_t database_rows_max = 10000;  // of nodes, and of events, in run.db; the newest are kept

  // What a peer gets before it has said who it is: enough for a Hello, nothing to hold memory with.
  static constexpr Limits stranger() {
    Limits limits;
    limits.head_bytes_max = 64 * kKiB;
    limits.payload_bytes_max = 0;
    limits.tensors_max = 0;
    limits.send_queue_bytes_max = 256 * kKiB;
    limits.send_queue_frames_max = 16;
    return limits;
  }

  // Queued frames are counted by their heads: their payloads are their sender's.
  constexpr std::uint64_t queued_heads_bytes_max() const { return send_queue_frames_max * kQueuedFrameBytes; }

  // The most that one connection's own buffers can hold; payloads land in memory that their receiver budgets.
  constexpr std::uint64_t connection_bytes_max() const {
    return kHeldBytes        // the first bytes that a waiting socket got
           + kStagingBytes   // bytes read from the socket and not yet understood
           + head_bytes_max  // the head of the frame being received
           + kGatherBytes    // one block of a strided tensor being sent
           + queued_heads_bytes_max();
  }

  constexpr std::uint64_t memory_bytes_max() const { return connections_max * connection_bytes_max(); }

  // What a coordinator holds for one ready node beside its connection's buffers: the model's floats take
  // `model_bytes`, the samples of one lease `lease_bytes`.
  constexpr std::uint64_t session_bytes_max(std::uint64_t model_bytes, std::uint64_t lease_bytes) const {
    return model_bytes                      // the contribution that is arriving
           + 2 * model_bytes                // the same in the form in which it travels, which may be larger
           + kFeedbackBlocks * model_bytes  // error feedback that is arriving
           + kFeedbackBlocks * model_bytes  // a copy of it, for checkpoints
           + kLeasesAhead * lease_bytes     // samples of this step and of the next, until they are written
           + head_bytes_max;                // one reply to a status question
  }

  // What a coordinator makes a node hold, beside its connection's buffers, the engine and the sample cache.
  constexpr std::uint64_t node_bytes_max(std::uint64_t model_bytes, std::uint64_t lanes) const {
    return 2 * model_bytes                                 // the parameters, and the next version arriving
           + lanes * kLaneBlocks * model_bytes             // gradients
           + kFeedbackBlocks * model_bytes                 // error feedback
           + kAnswersKept * kFeedbackBlocks * model_bytes  // changes to it by answers without a verdict
           + lease_bytes_held_max                          // samples that are waiting
           + payload_bytes_max                             // of the lease that is arriving, as it travels
           + model_file_bytes_max;                         // until it is written to the cache of models
  }

  static constexpr std::uint64_t kHeldBytes = 16 * kKiB;
  static constexpr std::uint64_t kStagingBytes = 16 * kKiB;
  static constexpr std::uint64_t kGatherBytes = 256 * kKiB;
  static constexpr std::uint64_t kQueuedFrameBytes = 512;
  static constexpr std::uint64_t kFeedbackBlocks = 2;  // residual and velocity
  static constexpr std::uint64_t kLeasesAhead = 2;
  static constexpr std::uint64_t kAnswersKept = 7;  // the newest one costs nothing
  // In a lane, each as large as the model: the gradients of two slots, their sum, one that waits.
  static constexpr std::uint64_t kLaneBlocks = 4;
};

}  // namespace w5xde
