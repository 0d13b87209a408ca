#include "tensor/safetensors.h"

#include "wire_input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  const Bytes file = fuzz::input_of(data, size);
  const auto contents = parse_safetensors(file);
  if (!contents.ok()) return 0;
  std::uint64_t tensor_bytes = 0;
  for (const NamedTensor& named : contents->tensors) {
    fuzz::must_hold(contents->find(named.name) == &named.tensor);
    fuzz::touch(named.tensor.bytes());
    tensor_bytes += named.tensor.byte_count();
  }
  // Header length, header, and no byte that belongs to no tensor.
  fuzz::must_hold(sizeof(std::uint64_t) + load<std::uint64_t>(file.data()) + tensor_bytes == file.size());
  return 0;
}
