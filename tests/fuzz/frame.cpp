#include "wire/frame.h"

#include "base/hash.h"
#include "wire_input.h"

namespace {

using namespace w5xde;

void decode_one(const FrameHeaderBytes& bytes) {
  const auto header = decode_frame_header(bytes, fuzz::kLimits);
  if (!header.ok()) return;
  fuzz::must_hold(header->head_bytes <= fuzz::kLimits.head_bytes_max);
  fuzz::must_hold(header->payload_bytes <= fuzz::kLimits.payload_bytes_max);
  fuzz::must_hold(encode_frame_header(header.value()) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FrameHeaderBytes bytes;
  if (size != bytes.size()) return 0;
  std::ranges::copy(fuzz::input_of(data, size), bytes.begin());
  decode_one(bytes);
  // No mutation finds a checksum, so it is made right: a peer can do that too.
  store(bytes.data() + 20, static_cast<std::uint32_t>(hash64(Bytes(bytes).first(20))));
  decode_one(bytes);
  return 0;
}
