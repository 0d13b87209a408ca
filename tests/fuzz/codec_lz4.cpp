#include "codec_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return w5xde::fuzz::decompress_one(w5xde::LosslessKind::lz4, {data, size});
}
