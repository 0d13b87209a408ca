#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const auto decoded = decode_goodbye(fuzz::input_of(data, size), fuzz::kLimits);
  if (!decoded.ok()) return 0;
  const auto again = decode_goodbye(fuzz::head_of(decoded.value()), fuzz::kLimits);
  fuzz::must_hold(again.ok() && again.value() == decoded.value());
  return 0;
}
