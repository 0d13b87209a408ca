// What the targets of wire/ and tensor/ have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "wire/messages.h"

namespace w5xde::fuzz {

inline Bytes input_of(const std::uint8_t* data, std::size_t size) {
  return std::as_bytes(std::span(data, size));
}

inline void must_hold(bool property) {
  if (!property) __builtin_trap();
}

// Small enough to be met by short inputs; the payload is no multiple of anything, so that padding has to
// count.
inline constexpr Limits kLimits = {.head_bytes_max = 4 * kKiB,
                                   .payload_bytes_max = 4099,
                                   .tensors_max = 40,
                                   .name_bytes_max = 20,
                                   .value_depth_max = 5,
                                   .value_items_max = 100};

template <class Message>
Head head_of(const Message& message) {
  Head head;
  encode(message, head);
  return head;
}

// Fixed binary messages have one form only: what is accepted is what an encoder would have written.
template <class Decoded>
void must_be_canonical(const Decoded& decoded, Bytes input) {
  if (decoded.ok()) must_hold(std::ranges::equal(head_of(decoded.value()), input));
}

inline void must_fit_a_payload(const TensorList& tensors) {
  must_hold(tensors.size() <= kLimits.tensors_max);
  must_hold(payload_bytes_of(tensors) <= kLimits.payload_bytes_max);
}

// Reads every byte of a view, for the address sanitizer to see; volatile, so that the reads are not optimised
// away.
inline void touch(Bytes bytes) {
  for (const volatile std::byte& byte : bytes) static_cast<void>(static_cast<std::byte>(byte));
}

}  // namespace w5xde::fuzz
