#include "wire/enrolment.h"
#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const auto decoded = decode_ready(fuzz::input_of(data, size), fuzz::kLimits);
  if (!decoded.ok()) return 0;
  fuzz::must_hold(decoded->engine.size() <= fuzz::kLimits.name_bytes_max);
  fuzz::must_hold(decoded->processor.size() <= fuzz::kLimits.name_bytes_max);
  const auto again = decode_ready(fuzz::head_of(decoded.value()), Limits{});
  fuzz::must_hold(again.ok() && again.value() == decoded.value());
  return 0;
}
