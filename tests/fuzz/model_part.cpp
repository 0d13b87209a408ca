#include "wire/enrolment.h"
#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const Bytes input = fuzz::input_of(data, size);
  const auto decoded = decode_model_part(input, fuzz::kLimits);
  fuzz::must_be_canonical(decoded, input);
  if (decoded.ok()) fuzz::must_hold(decoded->bytes <= fuzz::kLimits.payload_bytes_max);
  return 0;
}
