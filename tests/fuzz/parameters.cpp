#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const Bytes input = fuzz::input_of(data, size);
  const auto decoded = decode_parameters(input, fuzz::kLimits);
  fuzz::must_be_canonical(decoded, input);
  if (!decoded.ok()) return 0;
  fuzz::must_fit_a_payload(decoded->tensors);
  fuzz::must_hold(decoded->tensors.size() == 1);
  fuzz::must_hold(decoded->first_float <= decoded->floats_total);
  fuzz::must_hold(decoded->tensors[0].shape.elements() <= decoded->floats_total - decoded->first_float);
  return 0;
}
