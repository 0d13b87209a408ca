#include "codec/gradient.h"

#include <cmath>

#include "codec_input.h"

// The input is a codec's number among the ones below (u8) and the bytes of a gradient.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace w5xde;
  static constexpr const char* kCodecs[] = {"none",      "fp16",   "bf16",       "int8",      "onebit",
                                            "topk:0.01", "topk:1", "powersgd:1", "powersgd:5"};
  static const auto layout =
      BlockLayout::make({{"weight", {41, 37}}, {"bias", {41}}, {"empty", {0, 3}}, {"scalar", {}}}, 4096)
          .value();
  static fuzz::FencedMemory encoded_memory(fuzz::kEncodedBytesMax);
  static fuzz::FencedMemory block_memory(fuzz::kRawBytesMax);

  ByteReader reader(std::as_bytes(std::span(data, size)));
  const auto codec = parse_gradient_codec(kCodecs[reader.read<std::uint8_t>() % std::size(kCodecs)]).value();
  if (reader.exhausted()) return 0;
  const MutableBytes memory = block_memory.take(layout->floats() * sizeof(float));
  const std::span block(reinterpret_cast<float*>(memory.data()), layout->floats());

  // Twice over unlike memory: what is alike then was written both times.
  const Bytes encoded = encoded_memory.copy_of(reader.rest());
  std::ranges::fill(memory, std::byte{0x55});
  if (!decode_gradient(encoded, codec, *layout, block).ok()) return 0;
  const std::vector<std::byte> first(memory.begin(), memory.end());
  std::ranges::fill(memory, std::byte{0xaa});
  fuzz::require(decode_gradient(encoded, codec, *layout, block).ok());
  fuzz::require(std::ranges::equal(first, memory));

  std::vector<float> cleared(block.begin(), block.end());
  layout->clear_padding(cleared);
  fuzz::require(std::ranges::equal(std::as_bytes(std::span(cleared)), memory));

  // Whatever it was, an encoder takes it, keeps to its bound, and has no poison left.
  GradientEncoder encoder(codec, layout, 0.9f);
  for (int round = 0; round < 2; ++round) {
    const Bytes again = encoder.encode(block);
    fuzz::require(again.size() <= encoded_bytes_max(codec, *layout));
    fuzz::require(decode_gradient(again, codec, *layout, cleared).ok());
    for (const float left : encoder.feedback()) fuzz::require(std::isfinite(left));
  }
  return 0;
}
