#include "wire/proof.h"

#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const Bytes input = fuzz::input_of(data, size);
  fuzz::must_be_canonical(decode_proof(input), input);
  return 0;
}
