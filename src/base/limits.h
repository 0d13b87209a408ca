// What a peer may make us spend. Decoders take a Limits and check every count and length against it before
// they allocate, index or loop; memory_bytes_max() adds up what that can come to.
#pragma once

#include <cstddef>
#include <cstdint>

namespace w5xde {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;
inline constexpr std::uint64_t kGiB = 1024 * kMiB;

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

  static constexpr std::uint64_t kHeldBytes = 16 * kKiB;
  static constexpr std::uint64_t kStagingBytes = 16 * kKiB;
  static constexpr std::uint64_t kGatherBytes = 256 * kKiB;
  static constexpr std::uint64_t kQueuedFrameBytes = 512;
};

}  // namespace w5xde
