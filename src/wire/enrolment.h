// What a coordinator and a node say between hello and the first lease:
//
//   coordinator → node   offer    what the run is
//   node → coordinator   model    "I do not have this file"                    only where the model is a file
//   coordinator → node   model    the file, in parts                           and the node has not got it
//   node → coordinator   ready    the model is loaded, here is what it looks like
//
// And between a coordinator and an observer: status, asked and answered.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "w5xde/result.h"
#include "w5xde/sample_field.h"
#include "w5xde/sample_preparation.h"
#include "wire/messages.h"

namespace w5xde {

struct Offer {
  std::string run;         // its name, for logs
  std::string model;       // as the engine takes it
  std::string model_hash;  // of the model's file, SHA-256; empty where the model is no file
  std::uint64_t model_bytes = 0;
  std::string loss;
  std::vector<SampleField> inputs;
  SampleField targets;
  std::uint32_t classes = 0;
  std::optional<std::int64_t> ignore_index;
  SamplePreparation preparation;
  std::uint32_t threads = 1;
  DType compute = DType::f32;           // what engines compute matrix products in
  std::uint64_t model_fingerprint = 0;  // the node's must be equal
  bool newest_parameters = false;       // async: leases are computed with the newest parameters at hand
  double momentum = 0;                  // that nodes apply to what a sparse codec holds back

  // Settings for the node's end of the connection, the same as the coordinator's.
  std::uint64_t socket_buffer = 0;
  bool keep_alive = true;
  bool quick_ack = true;
  std::uint64_t receive_chunk = 0;
  bool combined_send = true;

  std::string memory_probe;  // a SharedProbe's question, to a node of this machine; empty: nothing is shared
  bool operator==(const Offer&) const = default;
};

// What a node keeps of the samples that it was sent, at most, unless it is told otherwise.
inline constexpr std::uint64_t kSampleCacheBytes = 256 * kMiB;

struct Ready {
  std::uint64_t model_fingerprint = 0;
  DType compute = DType::f32;            // as offered; a node of before bf16 does not say it
  std::string engine;                    // "torch 1.13.1 cpu"
  std::string processor;                 // for equal bits, this should be equal too
  std::uint64_t sample_cache_bytes = 0;  // for cached samples
  std::string machine;       // equal for nodes that share processor cores; empty: this node shares none
  std::uint32_t lanes = 0;   // how many slots those cores compute at once
  std::string memory_token;  // the probe's answer; empty: this node shares no memory with the coordinator
  bool operator==(const Ready&) const = default;
};

// A part of the model's file, which is the payload. From a node, empty: please send it.
struct ModelPart {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool operator==(const ModelPart&) const = default;
};

void encode(const Offer& message, Head& head);
void encode(const Ready& message, Head& head);
void encode(const ModelPart& message, Head& head);

Result<Offer> decode_offer(Bytes head, const Limits& limits);
Result<Ready> decode_ready(Bytes head, const Limits& limits);
Result<ModelPart> decode_model_part(Bytes head, const Limits& limits);

}  // namespace w5xde
