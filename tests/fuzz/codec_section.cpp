#include "codec/section.h"

#include "codec_input.h"

// The input is a codec number (u8), a shuffle width (u8), a raw size (u16, little-endian) and a section.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  static fuzz::FencedMemory encoded_memory(fuzz::kEncodedBytesMax);
  static fuzz::FencedMemory raw_memory(fuzz::kRawBytesMax);
  static SectionEncoder encoder;
  static SectionDecoder decoder;

  ByteReader reader(std::as_bytes(std::span(data, size)));
  const auto kind = static_cast<LosslessKind>(reader.read<std::uint8_t>());
  const auto shuffle_width = reader.read<std::uint8_t>();
  const MutableBytes raw = raw_memory.take(reader.read<std::uint16_t>());
  if (reader.exhausted()) return 0;
  const Bytes section = encoded_memory.copy_of(reader.rest());
  if (!decoder.decode(section, kind, shuffle_width, raw, nullptr).ok()) return 0;

  fuzz::require(section.size() <= section_bytes_max(raw.size()));
  const SectionCodec codec = {{kind, 1}, shuffle_width, kChunkLog2Min};
  std::vector<std::byte> back(raw.size());
  fuzz::require(decoder.decode(encoder.encode(raw, codec, nullptr), kind, shuffle_width, back, nullptr).ok());
  fuzz::require(std::ranges::equal(back, raw));
  return 0;
}
