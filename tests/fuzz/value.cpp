#include "wire/value.h"

#include <nlohmann/json.hpp>

#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const auto decoded = decode_value(fuzz::input_of(data, size), fuzz::kLimits);
  if (!decoded.ok()) return 0;
  std::vector<std::byte> encoded, encoded_again;
  encode_value(decoded.value(), encoded);
  const auto again = decode_value(encoded, fuzz::kLimits);
  fuzz::must_hold(again.ok());
  // Bytes, not values: a NaN is not equal to itself.
  encode_value(again.value(), encoded_again);
  fuzz::must_hold(encoded == encoded_again);
  return 0;
}
