#include "data/idx.h"

#include "data/gzip_reader.h"
#include "wire_input.h"

// The input is a file, raw or packed.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const Bytes file = fuzz::input_of(data, size);
  AlignedBuffer memory;
  const auto tensor = is_gzip(file) ? unpack_idx(file, memory) : parse_idx(file);
  fuzz::must_hold(memory.capacity() <= size * kGzipRatioMax);
  if (!tensor.ok()) return 0;
  fuzz::must_hold(tensor->dtype() == DType::u8 && tensor->shape().rank() > 0);
  fuzz::must_hold(tensor->bytes().size() == tensor->shape().elements());
  fuzz::touch(tensor->bytes());
  return 0;
}
