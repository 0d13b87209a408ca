#include "data/npy.h"

#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const Bytes file = fuzz::input_of(data, size);
  const auto tensor = parse_npy(file);
  if (!tensor.ok()) return 0;
  // The elements are the end of the file, all of it.
  fuzz::must_hold(tensor->bytes().size() == tensor->byte_count());
  fuzz::must_hold(tensor->bytes().data() + tensor->byte_count() == file.data() + file.size());
  fuzz::touch(tensor->bytes());
  return 0;
}
