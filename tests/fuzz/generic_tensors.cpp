#include "wire/generic_tensors.h"

#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const auto decoded = decode_generic_tensors(fuzz::input_of(data, size), fuzz::kLimits);
  if (!decoded.ok()) return 0;
  fuzz::must_fit_a_payload(decoded->tensors);
  fuzz::must_hold(decoded->payload.size() == payload_bytes_of(decoded->tensors));

  const auto views = views_of(decoded->tensors, decoded->payload);
  std::vector<GenericTensor> tensors;
  for (std::size_t i = 0; i < views.size(); ++i) tensors.push_back({decoded->tensors[i].name, views[i]});
  std::vector<std::byte> encoded;
  encode_generic_tensors(tensors, encoded);
  const auto again = decode_generic_tensors(encoded, fuzz::kLimits);
  fuzz::must_hold(again.ok());
  fuzz::must_hold(again->tensors == decoded->tensors);
  fuzz::must_hold(again->payload == decoded->payload);
  return 0;
}
