// Messages and their bytes, for tests.
#pragma once

#include <string>

#include "support/hex.h"
#include "wire/messages.h"

namespace w5xde {

template <class Message>
Head encoded(const Message& message) {
  Head head;
  encode(message, head);
  return head;
}

// One name for all the decoders, so that a test can be written once for every message.
template <class Message>
struct Decode;
template <>
struct Decode<Heartbeat> {
  static auto from(Bytes head, const Limits&) { return decode_heartbeat(head); }
};
template <>
struct Decode<Tensors> {
  static auto from(Bytes head, const Limits& limits) { return decode_tensors(head, limits); }
};
template <>
struct Decode<Lease> {
  static auto from(Bytes head, const Limits& limits) { return decode_lease(head, limits); }
};
template <>
struct Decode<Contribution> {
  static auto from(Bytes head, const Limits& limits) { return decode_contribution(head, limits); }
};
template <>
struct Decode<Parameters> {
  static auto from(Bytes head, const Limits& limits) { return decode_parameters(head, limits); }
};
template <>
struct Decode<Feedback> {
  static auto from(Bytes head, const Limits& limits) { return decode_feedback(head, limits); }
};
template <>
struct Decode<Verdict> {
  static auto from(Bytes head, const Limits&) { return decode_verdict(head); }
};
template <>
struct Decode<Goodbye> {
  static auto from(Bytes head, const Limits& limits) { return decode_goodbye(head, limits); }
};

template <class Message>
std::string refusal_of(const Message& message, const Limits& limits = {}) {
  const auto decoded = Decode<Message>::from(encoded(message), limits);
  return decoded.ok() ? "accepted" : decoded.error().to_string();
}

}  // namespace w5xde
